"""A difficulty must be one that there is, and what it sets must be the same for every environment."""

from typing import Any

import pytest
from gymnasium.envs.registration import load_env_creator

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.env_registry import arguments_of, env_ids, make, spec_of

pytestmark = pytest.mark.versions

STRANGER = """
from dataclasses import dataclass
import manyturn as mt

@dataclass(frozen=True)
class Height:
    steps: int
    turns: int

class Stairs(mt.TextEnv):
    levels = {"low": Height(2, 4), "high": Height(5, 9)}
    def tasks(self, split):
        return [mt.Task(f"{split}/{self.difficulty}", split, {"split": split, "steps": self.level.steps})]
    def begin(self, task, rng):
        self.left = self.level.steps
        return f"{self.left} steps."
    def respond(self, action):
        self.left -= 1
        return self.go_on("Up.") if self.left else self.succeed("There.")
"""


def classes() -> dict[str, type[TextEnv]]:
    found: dict[str, Any] = {}
    for name in (name for name in env_ids() if name.startswith("manyturn/")):  # tests register others
        spec = spec_of(name)
        assert spec is not None and isinstance(spec.entry_point, str)
        found[name] = load_env_creator(spec.entry_point)
    return found


LEVELLED = {name: tuple(cls.levels) for name, cls in classes().items() if cls.levels}


@pytest.mark.parametrize("name", LEVELLED)
def test_a_misspelt_difficulty_is_refused_with_all_that_there_are(name):
    with pytest.raises(ValueError, match=f"no difficulty 'hrad': .* has {', '.join(LEVELLED[name])}$"):
        make(name, difficulty="hrad")


def test_every_environment_that_takes_a_difficulty_lists_what_it_takes():
    takes = {name for name, cls in classes().items() if "difficulty" in (arguments_of(cls) or ())}
    # the tasks of Software come from a file, and its difficulty says which of them to keep
    assert takes - {"manyturn/Software-v0"} == set(LEVELLED) and len(LEVELLED) == 30


def test_a_class_without_a_constructor_of_its_own_has_levels(tmp_path):
    file = tmp_path / "stairs.py"
    file.write_text(STRANGER, encoding="utf-8")
    name = f"{file}:Stairs"
    low, high, short = (make(name, **args) for args in ({}, {"difficulty": "high"}, {"max_turns": 2}))
    assert [(env.difficulty, env.max_turns, env.level.steps) for env in (low, high, short)] == [
        ("low", 4, 2),
        ("high", 9, 5),
        ("low", 2, 2),
    ]
    assert high.reset(seed=0)[0] == "5 steps."
    with pytest.raises(ValueError, match="Stairs has low, high"):
        make(name, difficulty="higher")


def test_files_in_place_of_made_tasks_have_no_difficulty(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "b"}\n', encoding="utf-8")
    (tmp_path / "q.jsonl").write_text(
        '{"id": "q", "question": "What is A?", "answers": ["b"], "split": "train"}\n', encoding="utf-8"
    )
    env = make("manyturn/Search-v0", corpus=str(tmp_path / "c.jsonl"), questions=str(tmp_path / "q.jsonl")).unwrapped
    assert (env.difficulty, env.level) == (None, None)


def test_an_unknown_argument_is_refused_where_a_group_of_arguments_is_taken():
    for name in ("manyturn/Shop-v0", "manyturn/Desk-v0"):
        with pytest.raises(ValueError, match="takes no argument 'prodcts'; it takes split, "):
            make(name, prodcts=50)
    assert make("manyturn/Shop-v0", products=50, catalogue=3).unwrapped.tasks("test")[0].params["catalogue"] == 3
    assert make("manyturn/Desk-v0", users=200, database=3).unwrapped.tasks("test")[0].params["users"] == 200
