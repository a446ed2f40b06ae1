"""Rules that decide otherwise than they say."""

import math

import pytest

from manyturn.agents.play.episode import Episode, TurnRecord
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.judges.rule import RULES, Case


def turn(action, anchor, *, valid=True, **parts):
    return TurnRecord("", f"I {action}", action, True, valid, sum(parts.values()), parts, anchor, None, (0.0, 0.0))


TURNS = [turn("go", "a"), turn("Look", "b", valid=False, step=0.5), turn("go", "b"), turn("go", "a", step=-1.0)]
CASE = Case(Episode(EpisodeKey(0, "train/1", "t", 0), Task("t", "train", {}), TURNS), ("go", "go", "go"))


@pytest.mark.parametrize(
    ("rule", "scores"),
    [
        ("expert", [1, 0, 1, math.nan]),
        ("valid", [1, 0, 1, 1]),
        ("repetition", [1, 1, 1, 0]),
        ({"name": "phrase", "text": "LOOK"}, [0, 1, 0, 0]),
        ({"name": "phrase", "text": "i go", "absent": True}, [0, 1, 0, 0]),
        ({"name": "reward_part", "part": "step"}, [1, 1, 1, 0]),
        ({"name": "reward_part", "part": "step", "least": 0.5}, [0, 1, 0, 0]),
    ],
)
def test_a_rule_decides_as_it_says(rule, scores):
    assert RULES.apply(RULES.parse(rule), CASE) == pytest.approx(scores, nan_ok=True)


def test_every_rule_is_tried():
    own = [name for name in RULES.names() if RULES.entry(name).function.__module__.startswith("manyturn.")]
    assert own == ["expert", "phrase", "repetition", "reward_part", "valid"]
