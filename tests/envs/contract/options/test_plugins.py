"""A broken plugin must not stop those who do not need it, and must be named to those who do."""

import os
import subprocess
import sys
from pathlib import Path

import plugin_package
import pytest

pytestmark = pytest.mark.versions

BROKEN = {
    "lacks a package": ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
    "raises": ("1 / 0\n", "ZeroDivisionError: division by zero"),
    "is no Python": ("def f(:\n", "SyntaxError: invalid syntax"),
    "ends the process": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "misspells": ("import manyturn\nmanyturn.regster('a/B-v0', 'a:B')\n", "has no attribute 'regster'"),
    "registers nonsense": ("import manyturn\nmanyturn.register('no id', 3)\n", "Malformed environment ID"),
    "takes another's id": ("import manyturn\nmanyturn.register('manyturn/Maze-v0', 'a:B')\n", "is registered already"),
}


def python(code: str, site: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("fault", BROKEN)
def test_what_needs_no_plugin_goes_on_and_a_sound_one_is_loaded_once(tmp_path, fault):
    source, reason = BROKEN[fault]
    plugin_package.install(tmp_path, "broken_one", source)
    plugin_package.install(tmp_path, "a_sound_one", "print('loaded')\n")
    code = (
        "import manyturn\n"
        "for name in ('manyturn/GuessNumber-v0', 'manyturn/GuessNumber-v0', 'theirs/World-v0'):\n"
        "    try:\n"
        "        print(manyturn.make(name).unwrapped)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    found = python(code, tmp_path)
    first, *made, refused = found.stdout.splitlines()
    assert first == "loaded" and len(made) == 2 and all("GuessNumber" in line for line in made)
    assert found.stderr.count("PluginWarning: the plugin 'broken_one' of broken_one (broken_one) raised ") == 1
    assert reason in found.stderr and "It is passed by: fix the package, or uninstall it" in found.stderr
    assert refused.startswith("no environment 'theirs/World-v0'; ") and reason in refused
    assert "; it may be a name of a plugin that is broken: the plugin 'broken_one'" in refused


def test_a_function_that_raises_is_placed_in_its_file(tmp_path):
    site = plugin_package.install(tmp_path, "their_package", "def register():\n    return {}['missing']\n")
    entry = site / "their_package-1.0.dist-info" / "entry_points.txt"
    entry.write_text("[manyturn.plugins]\ntheirs = their_package:register\n")
    found = python("import manyturn; manyturn.make('manyturn/GuessNumber-v0')", tmp_path)
    fault = "the plugin 'theirs' of their_package (their_package:register) raised KeyError: 'missing'"
    assert f"{fault} (their_package.py, line 2). It is passed by" in found.stderr


def test_commands_go_on_with_a_warning_of_one_line(tmp_path):
    plugin_package.install(tmp_path, "broken_one", "import no_such_package\n")
    plugin_package.install(tmp_path, "odd_one", "import manyturn\nmanyturn.register('odd/World-v0', 'nowhere:World')\n")
    code = "import sys; from manyturn.cli.app import main; sys.argv = ['manyturn', 'envs']; main()"
    found = python(code, tmp_path)
    assert found.returncode == 0 and "manyturn/GuessNumber-v0" in found.stdout
    assert "\n  odd/World-v0: " in found.stdout and "No module named 'nowhere'" in found.stdout
    assert found.stderr.startswith("manyturn: warning: the plugin 'broken_one' of broken_one (broken_one) raised ")
    assert found.stderr.count("\n") == 1, found.stderr
