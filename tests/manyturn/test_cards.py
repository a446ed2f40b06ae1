"""Cards tell what is measured, of any environment that can be named."""

import io
import json
import textwrap
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from manyturn.cli.pages.env_cards import card, difficulties, print_card
from manyturn.envs.classics.maze import Maze
from manyturn.envs.household.env import Household

TRAPS = Path(__file__).parents[1] / "envs" / "traps.py"
FOREIGN = '''
from typing import Literal
import gymnasium
import manyturn as mt

class Foreign(gymnasium.Env):
    """Does \x1b[31m[red]nothing."""
    observation_space = action_space = mt.TextSpace()
    instructions = "Say \u202eanything."
    def reset(self, *, seed=None, options=None):
        return "begun", {}
    def step(self, action):
        return "over", 1.0, True, False, {}

class Levelled(mt.TextEnv):
    splits = ("train", "held_out")
    def __init__(self, difficulty: Literal["calm", "wild"] = "calm"):
        super().__init__(max_turns=2 if difficulty == "calm" else 1)
    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(3)]
    def begin(self, task, rng):
        return "Go on."
    def respond(self, action):
        return self.succeed("Won.") if self.turn else self.go_on("And again.")
    def expert(self):
        return "x"
'''


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    file = tmp_path_factory.mktemp("foreign") / "foreign.py"
    file.write_text(textwrap.dedent(FOREIGN), encoding="utf-8")
    return file


def shown(found) -> str:
    console = Console(file=io.StringIO(), width=120)
    print_card(found, console)
    return console.file.getvalue()


def test_every_difficulty_is_measured_and_the_split_is_named():
    found = card("manyturn/Maze-v0", samples=10)
    assert [(level.difficulty, level.max_turns) for level in found.levels] == [
        ("easy", 12),
        ("medium", 20),
        ("hard", 36),
    ]
    for level in found.levels:
        assert level.measured_on == ("validation", 10) and level.splits["test"] == 100_000
        assert level.expert == 1.0 and 0 <= level.random < 1 and level.turns_per_second > 1000
    assert (found.anchor, found.licence, found.has_expert) == ("own key", "Apache-2.0", True)
    plain = json.loads(json.dumps(asdict(found)))
    assert plain["levels"][0]["measured_on"] == ["validation", 10] and plain["instructions"] == Maze.instructions
    text = shown(found)
    assert "share of 10 validation tasks" in text and "take gold" in text and "hard" in text


def test_a_difficulty_that_is_asked_for_is_the_only_one():
    found = card("manyturn/Household-v0", {"difficulty": "tiny"}, samples=3)
    assert [level.difficulty for level in found.levels] == ["tiny"] and found.anchor == "task and observation"


def test_levels_are_found_by_type_and_by_module(foreign):
    assert difficulties(Maze) == ("easy", "medium", "hard") and difficulties(Household)[0] == "tiny"
    found = card(f"{foreign}:Levelled", samples=40)
    assert [(level.difficulty, level.expert, level.random) for level in found.levels] == [
        ("calm", 1, 1),
        ("wild", 0, 0),
    ]
    assert found.about == "", "a class without a text of its own does not borrow that of its base"
    assert found.levels[0].measured_on == ("held_out", 3), "no more tasks than there are, of a split that there is"


def test_a_foreign_environment_has_a_card_and_cannot_act_on_the_terminal(foreign):
    found = card(f"{foreign}:Foreign", samples=2)
    assert found.levels[0].difficulty is None and found.levels[0].expert is None and found.levels[0].random == 1.0
    assert (found.anchor, found.has_expert, found.licence) == ("observation", False, None)
    text = shown(found)
    assert "<U+001B>[31m[red]nothing" in text and "<U+202E>" in text and "\x1b" not in text


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="samples"):
        card("manyturn/Maze-v0", samples=0)


@pytest.mark.parametrize(("cls", "words"), [("Leaves", "ended with status 0"), ("Sleeps", "no answer within 0.5 s")])
def test_an_environment_that_hangs_or_dies_costs_one_line(cls, words, command):
    ended = command("envs", f"{TRAPS}:{cls}", "--timeout", 0.5)
    assert ended.code == 2 and words in ended.err and ended.err.count("\n") == 1


def test_what_the_environment_raises_is_told_with_its_place(command, tmp_path):
    file = tmp_path / "half.py"
    file.write_text(
        "import manyturn as mt\n\nclass Half(mt.TextEnv):\n    tasks = begin = respond = None\n\n    1 / 0\n"
    )
    ended = command("envs", f"{file}:Half")
    assert ended.code == 2 and "half.py, line 6, raised ZeroDivisionError: division by zero: fix the file" in ended.err


def test_what_another_project_has_made_is_not_under_our_licence():
    pytest.importorskip("textarena", reason="no games: pip install 'manyturn[textarena]'")
    assert card("textarena:PegJump-v0", samples=1).licence is None
