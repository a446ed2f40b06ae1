"""A word that other programs use, or another command of this one, is answered with the option that is meant."""

import subprocess
import sys

import pytest

from manyturn.api.training import configured
from manyturn.terminal import command_exit
from manyturn.terminal.overrides import parse_words

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"


def test_a_name_of_the_package_is_looked_up_once():
    code = "import manyturn as mt; mt.Task; del mt.__getattr__; print(mt.Task is vars(mt)['Task'], mt.credit.__name__)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout == "", "credit was not looked up before"
    ended = subprocess.run(
        [sys.executable, "-c", code.replace("mt.Task;", "mt.Task; mt.credit;")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["True", "manyturn.credit"]


def test_without_torch_a_run_that_is_not_there_is_said_to_be_missing(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    refused = command("evaluate", "runs/my_world-1", "--env", "manyturn/Maze-v0")
    assert refused.code == 2 and "there is no runs/my_world-1" in refused.err and "manyturn[train]" in refused.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--lr 1e-4", "learner.lr"),
        ("--learning-rate 1e-4", "learner.lr"),
        ("--temperature 0.5", "did you mean sampling.temperature?"),
        ("--width 32", "did you mean model.width?"),
        ("--gamma 0.9", "did you mean credit.advantage.gamma"),
        ("--env.difficulty hard", "env.args.difficulty"),
        ("--env.arg {}", "did you mean 'args'"),
        ("--env-args difficulty=hard", "env.args: a table of arguments by name"),
        ("--agent.instructions Obey.", "A text of your own is agent.system"),
        ("--algorithm ppo", "ppo is a recipe: add --recipe ppo"),
        ("--credit.advantage ppo", "ppo is no advantage, but a recipe of several parts: add --recipe ppo"),
        ("--objective dapo", "add --recipe dapo"),
        ("--credit.advantage.lam 0.9", "of bilevel_gae, dual_gae, gae, turn_gae: give its name as well"),
        ("--model tinny", "did you mean 'tiny'"),
        ("--model.kind hf", "write name = one of pretrained, tiny"),
        ("--model.name tiny --model.path x", "path is no option of model tiny, but of pretrained"),
        ("--steps 3 manyturn/GuessNumber-v0", "name one environment"),
    ],
)
def test_a_word_of_other_programs_is_answered_with_ours(command, words, meant):
    ended = command("train", MAZE, *words.split())
    assert ended.code == command_exit.BAD_INPUT and meant in ended.err and ended.err.count("\n") == 1, ended.err


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [
        ["--env-args", "{difficulty = 'easy'}"],
        ["--env.args", "{difficulty = 'easy'}"],
        ["--env-args.difficulty", "easy"],
        ["--env.args.difficulty=easy"],
    ],
)
def test_arguments_of_an_environment_have_one_name_in_all_commands(command, words, tmp_path):
    plain, options = parse_words([*words, MAZE])
    assert configured((), options, *plain).env.args == {"difficulty": "easy"}
    panel = tmp_path / "panel.json"
    assert command("panel", "make", MAZE, *words, "--limit", 2, "--out", panel).code == 0
    assert '"difficulty": "easy"' in panel.read_text()
    found = command("evaluate", "expert", "--env", MAZE, *words, "--limit", 1)
    assert found.code == 0, found.err
    for name in ("check", "envs"):
        wrong = command(name, MAZE, *(word.replace("easy", "esay") for word in words))
        assert wrong.code != 0 and "no difficulty 'esay': Maze has easy, medium" in wrong.out + wrong.err


@pytest.mark.parametrize("words", [[MAZE, "--steps", "3"], ["--steps", "3", MAZE], ["--env", MAZE, "--steps", "3"]])
def test_the_environment_may_stand_anywhere_and_have_its_name(words):
    plain, options = parse_words(words)
    config = configured((), options, *plain)
    assert (config.env.id, config.steps) == (MAZE, 3)
