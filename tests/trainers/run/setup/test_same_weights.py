"""A placement of docs/many-machines.md that does not run, or ends on other weights than the others."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import HostProcess
from forked import Forking
from needs_host import host as need
from ray_left import nothing_left

PAGE = Path(__file__).parents[4] / "docs" / "many-machines.md"
BRIEF = (
    "--steps 2 --rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.max-updates 20 "
    "--warmup.must-succeed false --placement.wait 300"
)


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The words of the page's commands: three runs, and the host of the second."""
    [block] = re.findall(r"<!-- run by \S+test_same_weights.py -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


@pytest.fixture(scope="module")
def local(commands, tmp_path_factory, forked) -> str:
    return weights(forked, commands[0], tmp_path_factory.mktemp("places") / "local")


def weights(forked: Forking, words: list[str], run: Path) -> str:
    """The hash of the weights that a command ends on, made short."""
    brief = BRIEF.split() if "--placement.kind" in words else BRIEF.split()[:-2]
    ran = forked("-m", "manyturn", *words, *brief, "--out", run)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads((run / "summary.json").read_text())["weights"]


@pytest.mark.deep
def test_at_a_host_that_somebody_has_started_the_weights_are_the_same(commands, local, tmp_path, forked):
    _, [command, option, port], words, _ = commands
    assert (command, option) == ("host", "--port")
    one = HostProcess()
    try:
        words = [word.replace(f"http://127.0.0.1:{port}", one.url) for word in words]
        assert weights(forked, words, tmp_path / "static") == local
    finally:
        one.end()


def test_at_three_hosts_on_ray_the_weights_are_the_same(commands, local, tmp_path, forked):
    need("ray")
    with nothing_left():
        assert weights(forked, commands[-1], tmp_path / "ray") == local
