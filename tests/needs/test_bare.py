"""What an earlier run has left, or a shell has set, must turn no test green."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from manyturn.envs.software.sources import cache_folder

ROOT = Path(__file__).parents[2]
LOOK = """
import os, sys
print(*sorted(os.environ))
print(os.environ["HOME"], os.environ["TMPDIR"])
print(os.listdir(os.environ["HOME"]), os.listdir(os.environ["TMPDIR"]))
os.mkdir(os.environ["TMPDIR"] + "/closed", 0)
sys.exit(3)
"""


def bare(home: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    command = [ROOT / ".ci" / "bare", *options, sys.executable, "-c", LOOK]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def test_a_command_sees_no_leftover_and_leaves_none(tmp_path):
    (tmp_path / ".cache").mkdir()
    ours = {
        "MANYTURN_CACHE": "x",
        "XDG_CACHE_HOME": "x",
        "PYTHONPATH": "x",
        "MANYTURN_DEBUG": "1",
        "OPENAI_API_KEY": "x",
    }
    told = {"MANYTURN_GOLDEN": "x", "MANYTURN_REQUIRE_ENGINE": "1", "DOCKER_HOST": "x", "PIP_INDEX_URL": "x"}
    ended = bare(tmp_path, **ours, **told)
    names, folders, found = ended.stdout.splitlines()
    assert not ours.keys() & set(names.split()) and told.keys() <= set(names.split())
    assert found == "[] []" and str(tmp_path) not in folders
    assert ended.returncode == 3 and not any(Path(folder).parent.exists() for folder in folders.split())


def test_settings_of_pip_are_found_though_the_home_is_not(tmp_path):
    assert "PIP_CONFIG_FILE" not in bare(tmp_path).stdout
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("")
    assert "PIP_CONFIG_FILE" in bare(tmp_path).stdout
    assert "PIP_" not in bare(tmp_path, "--plain", PIP_INDEX_URL="x").stdout


def test_tests_have_a_cache_of_their_own():
    assert cache_folder().is_relative_to(tempfile.gettempdir()) and Path.home() not in cache_folder().parents
