"""Words and places that will not do: one line with the fix, and exit code 2."""

import sys
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.envs.contract.options.options import ConfigError

TRAIN = ("train", "{doors}", "--device", "cpu", "--out", "run")
REFUSED = {  # words: the fix that is named
    ("evaluate", "random", "--env", "{doors}", "--temperature", 0.5): "sampling.temperature",
    ("evaluate", "random", "--env", "{doors}", "--base-url", "x"): "endpoint.base-url",
    ("evaluate", "random", "--env", "{doors}", "--limt", 3): "'limit'",
    ("evaluate", "random", "--env", "{doors}", "--out", "/proc/x"): "choose another",
    ("evaluate", "random", "--env", "{doors}", "--out", "file/x"): "choose another",
    ("evaluate", "smol", "--env", "{doors}"): "OWNER/NAME",
    ("evaluate", "missing.gguf", "--env", "{doors}"): "a model's folder",
    ("evaluate", "one", "--env", "{doors}"): "a.gguf is no GGUF file",
    ("evaluate", "one/a.gguf", "--env", "{doors}"): "a.gguf is no GGUF file",
    ("evaluate", "two", "--env", "{doors}"): "two/a.gguf",
    (*TRAIN, "--temprature", 0.5): "sampling.temperature",
    (*TRAIN[:-1], "/proc/x"): "choose another",
    (*TRAIN, "--model.path", "smol"): "OWNER/NAME",
    (*TRAIN, "--recipe", "gra"): "the recipe gra needs progress()",
    ("view", "file"): "name the folder",
    ("view", "nowhere"): "name the folder",
    ("view", "two"): "manyturn evaluate",
}


@pytest.fixture
def places(tmp_path, monkeypatch) -> None:
    """A file, and folders with one damaged GGUF file and with two."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    for file in ("one/a.gguf", "two/a.gguf", "two/b.gguf"):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_bytes(b"no GGUF")


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(map(str, words[:1] + words[-2:])))
def test_what_will_not_do_is_refused_in_a_line_with_the_fix(command, doors, places, words):
    pytest.importorskip("gguf")
    pytest.importorskip("starlette")
    ended = command(*(str(word).format(doors=doors) for word in words))
    *before, line = ended.err.splitlines()
    assert ended.code == 2 and REFUSED[words] in line, ended.err
    assert not before or "loading" in before[0], ended.err
    assert not Path("run").exists()


@pytest.mark.parametrize("package", ["tensorboard", "trackio", "wandb"])
def test_a_logger_that_is_not_installed_is_refused_in_one_line(command, doors, places, monkeypatch, package):
    """It was closed before it had begun, and that error stood in front of the right one."""
    monkeypatch.setitem(sys.modules, package, None)
    ended = command(*(word.format(doors=doors) for word in TRAIN), "--loggers", f'["{package}"]')
    assert ended.code == 2 and ended.err.count("\n") == 1 and f"manyturn[{package}]" in ended.err, ended.err


@pytest.mark.parametrize(("built", "fix"), [(None, "install torch for CUDA"), ("12.8", "no GPU is visible")])
def test_a_gpu_that_is_not_there_is_told_from_a_torch_without_cuda(command, doors, places, monkeypatch, built, fix):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ended = command("train", doors, "--device", "cuda", "--out", "run")
    assert ended.code == 2 and fix in ended.err and ended.err.count("\n") == 1, ended.err


def test_two_environments_in_one_call_are_refused(doors):
    with pytest.raises(ConfigError, match="name one"):
        mt.train(doors, env={"id": "manyturn/Maze-v0"})


def test_a_limit_beyond_the_split_is_remarked(command, doors):
    ended = command("evaluate", "random", "--env", doors, "--limit", 10_000)
    assert ended.code == 0 and "17 tasks is all" in ended.out, ended.out


def test_what_libraries_plan_does_not_reach_the_user(command, doors, places, recwarn):
    Path("policy.py").write_text(
        "import warnings\n"
        "def first(observation, info):\n"
        "    warnings.warn_explicit('theirs', FutureWarning, '/lib/site-packages/library.py', 1)\n"
        "    warnings.warn('mine', FutureWarning)\n"
        "    return info['admissible'][0]\n"
    )
    assert command("evaluate", "policy.py:first", "--env", doors, "--limit", 1).code == 0
    assert {str(one.message) for one in recwarn} & {"mine", "theirs"} == {"mine"}
