"""Classics have exact rules, can be solved, and share no task or structure between splits."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.classics.blocksworld import Blocksworld
from manyturn.envs.classics.countdown import Countdown
from manyturn.envs.classics.sokoban import Sokoban
from manyturn.envs.classics.wordle import Wordle
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import SPLITS, Task

pytestmark = pytest.mark.versions

STRUCTURES = {  # what test_unseen shares with no other split
    Sokoban: lambda task: re.sub("[^#|]", "-", task.params["rows"]),
    Wordle: lambda task: task.params["secret"],
    Countdown: lambda task: task.params["target"],
    Blocksworld: lambda task: str(
        [sorted(map(len, map(str.split, task.params[at].split("|")))) for at in ("start", "goal")]
    ),
}
LEVELS = [(cls, level) for cls in STRUCTURES for level in cls.levels]
WALK = st.lists(st.integers(0, 999), max_size=12)


def begun(cls: type[TextEnv], level: str, number: int, split: str = "train", **args) -> TextEnv:
    env = cls(split, difficulty=level, **args)
    env.reset(seed=0, options={"task": env.tasks(split)[number]})
    return env


def posed(cls: type[TextEnv], **params) -> TextEnv:
    """An environment with a task of these parameters."""
    env = cls(max_turns=100)
    env.reset(seed=0, options={"task": Task("posed", "train", params)})
    return env


def walk(env: TextEnv, choices: list[int]) -> list[tuple]:
    """Admissible commands, and for numbers of 700 and above the expert's, until the episode ends."""
    record = []
    for choice in choices:
        listed = env.admissible() or []
        record.append(env.step(env.expert() if choice >= 700 else listed[choice % len(listed)]))
        if record[-1][2] or record[-1][3]:
            break
    return record


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_the_expert_succeeds_and_luck_does_not(cls, level):
    solved, lucky, count = 0, 0, 25
    for split in cls.splits:
        for number in range(count):
            record = walk(begun(cls, level, number, split), [999] * 60)
            assert all(step[4]["understood"] for step in record) and sum(step[1] for step in record) <= 1
            solved += record[-1][4]["success"]
            choices = list(generator("luck", number).integers(0, 700, 60))
            lucky += walk(begun(cls, level, number, split), choices)[-1][4]["success"]
    assert solved >= 0.99 * count * len(cls.splits) and lucky <= 0.2 * count * len(cls.splits)


@pytest.mark.parametrize(("cls", "level"), LEVELS)
@settings(max_examples=10, deadline=None)
@given(number=st.integers(0, 5000), before=WALK, after=WALK)
def test_a_snapshot_continues_and_listed_commands_are_understood(cls, level, number, before, after):
    env = begun(cls, level, number, max_turns=100)
    record = walk(env, before)
    assert all(step[4]["understood"] for step in record)
    if record and record[-1][2]:
        return
    data, listed = env.snapshot(), env.admissible() or []
    first = walk(env, after)
    other = cls("test", difficulty=level, max_turns=100)
    other.restore(data)
    assert other.snapshot() == data and walk(other, after) == first
    for command in {"", "up", "down", "left", "right", "guess zzzzz", "1 + 1", "stack red on red", "\ud800"} - set(
        listed
    ):
        other.restore(data)
        assert not other.step(command)[4]["understood"] and other.admissible() == listed


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_no_task_is_in_two_splits_and_no_structure_of_the_unseen_split_in_another(cls, level):
    env = cls(difficulty=level)
    tasks = {split: [env.tasks(split)[i] for i in range(80)] for split in env.splits}
    assert len({task.content for of_split in tasks.values() for task in of_split}) == 80 * len(tasks)
    usual = {STRUCTURES[cls](task) for split in SPLITS for task in tasks[split]}
    assert not usual & {STRUCTURES[cls](task) for task in tasks["test_unseen"]}


def test_a_box_is_pushed_alone_and_never_into_a_wall_or_another():
    env = posed(Sokoban, rows="########|#@$-$$.#|#..----#|########")
    assert env.admissible() == ["down", "right"]
    assert env.step("right")[0].splitlines()[1] == "#-@$$$.#"
    text, _, _, _, info = env.step("right")
    assert not info["understood"] and text.splitlines()[2] == "#-@$$$.#"
    assert posed(Sokoban, rows="#####|#@$.#|#####").step("right")[1:3] == (1.0, True)


@pytest.mark.parametrize(
    ("secret", "guess", "answer"),
    [
        ("apple", "paper", "p elsewhere, a elsewhere, p yes, e elsewhere, r no."),
        ("above", "apple", "a yes, p no, p no, l no, e yes."),
        ("later", "apple", "a elsewhere, p no, p no, l elsewhere, e elsewhere."),
        ("eager", "sheep", "s no, h no, e elsewhere, e yes, p no."),
    ],
)
def test_a_letter_that_occurs_twice_is_answered_as_often_as_it_is_in_the_word(secret, guess, answer):
    env = posed(Wordle, secret=secret, words=" ".join(sorted({secret, guess, "zebra"})))
    assert env.step(f"guess {guess}")[0].lower() == answer


def test_results_that_are_not_whole_and_above_zero_are_refused():
    env = posed(Countdown, numbers=[3, 4, 8], target=6, uses_all=False)
    for command in ("3 - 4", "3 - 3", "8 / 3", "3 * 3", "3+4", "5 + 3", "8 ** 3", "(8 / 4)"):
        assert not env.step(command)[4]["understood"]
    assert env.step("8 / 4")[0] == "Numbers: 2, 3. Target: 6."
    assert env.step("2 * 3")[1:3] == (1.0, True)
    env = posed(Countdown, numbers=[3, 4], target=6, uses_all=False)
    text, reward, terminated, _, info = env.step("3 + 4")
    assert terminated and reward == 0 and not info["success"] and "any more" in text


def test_numbers_left_over_count_only_where_all_must_be_used():
    assert posed(Countdown, numbers=[2, 3, 9], target=6, uses_all=False).step("2 * 3")[2]
    assert not posed(Countdown, numbers=[2, 3, 9], target=6, uses_all=True).step("2 * 3")[2]


def test_only_a_free_block_can_be_taken_and_only_one():
    env = posed(Blocksworld, start="red blue|green", goal="blue red|green")
    assert env.admissible() == ["pick up green", "unstack blue from red"]
    assert not env.step("pick up red")[4]["understood"]
    text = env.step("unstack blue from red")[0]
    assert text == "Towers: green; red. You hold the blue block."
    assert env.admissible() == ["put down blue", "stack blue on green", "stack blue on red"]
    record = walk(env, [999] * 10)
    assert len(record) == 3 and record[-1][1] == 1.0


PINNED = {
    Sokoban: {"easy": "877b0819", "medium": "76d027db", "hard": "c849d782"},
    Wordle: {"easy": "fa5ad87d", "medium": "196f35ef", "hard": "cabe5316"},
    Countdown: {"easy": "f4fb1069", "medium": "c757d774", "all": "25bc26a8"},
    Blocksworld: {"easy": "98fb1ef2", "medium": "4904ff24", "hard": "161dc00a"},
}


@pytest.mark.parametrize("cls", PINNED)
def test_tasks_stay_what_they_were_when_results_were_published(cls):
    assert {level: cls(difficulty=level).tasks("test")[3].content[:8] for level in cls.levels} == PINNED[cls]
