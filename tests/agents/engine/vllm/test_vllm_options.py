"""What the engines with vLLM need is asked for in one line; none of it needs vLLM."""

from importlib.util import find_spec
from typing import Any

import pytest

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import configure

MAZE: dict[str, Any] = {"env": {"id": "manyturn/Maze-v0"}}


def words(*more: str) -> list[str]:
    return ["train", "manyturn/Maze-v0", "--engine", "vllm", "--warmup.episodes", "0", "--steps", "0", *more]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vllm is installed here")
def test_without_the_package_the_run_is_refused_with_the_way_to_get_it(command, tmp_path):
    ended = command(*words("--out", str(tmp_path / "run")))
    assert ended.code == 2 and "engine vllm needs the package vllm 0.32" in ended.err and "make vllm-cpu" in ended.err


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vllm is installed here")
def test_a_release_of_another_series_is_refused_by_name(command, tmp_path, monkeypatch):
    info = tmp_path / "site" / "vllm-0.20.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.20.2\n")
    monkeypatch.syspath_prepend(str(info.parent))
    ended = command(*words("--out", str(tmp_path / "run")))
    assert ended.code == 2 and "vllm 0.20.2 is not of the series 0.32" in ended.err


def test_the_difference_between_two_programs_is_weighed_unless_told_otherwise():
    for engine in ("vllm", {"name": "vllm-server", "addresses": "http://127.0.0.1:8000"}):
        run = configure({**MAZE, "engine": engine})
        assert run.objective.correction is not None and run.objective.correction.cap == 2
    assert configure(MAZE).objective.correction is None
    chosen = configure({**MAZE, "engine": "vllm", "objective": {"correction": {"cap": 5.0}}})
    assert chosen.objective.correction.cap == 5
    trusting = configure({**MAZE, "engine": "vllm", "learner": {"old_logprobs": "engine"}})
    assert trusting.objective.correction is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": "vllm", "sampling": {"top_p": 0.9}}, "unknown Sampling option 'top_p'"),
        ({"engine": "vllm", "rollout": {"branching": {"initial": 2, "threshold": 0.5}}}, "vllm does not know"),
        ({"engine": {"name": "vllm-server", "addresses": "localhost:8000"}}, "write http://HOST:PORT"),
        ({"engine": {"name": "vllm-server", "addresses": "http://me:secret@a:1"}}, "no user and no password"),
        ({"engine": {"name": "vllm-server", "addresses": "http://a:1, http://a:1/"}}, "given twice"),
        ({"engine": "vllm-server"}, "engine.addresses"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(changes, said):
    with pytest.raises(ConfigError, match=said):
        configure({**MAZE, **changes})
