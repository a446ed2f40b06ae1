"""The maze is solvable, honest about what is seen, and different in every split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyturn as mt
from manyturn.envs.classics.maze import LEVELS, Maze


@pytest.mark.parametrize("difficulty", LEVELS)
def test_expert_succeeds_within_the_limit_on_every_maze(difficulty):
    env = Maze(difficulty=difficulty)
    turns = []
    for split in env.splits:
        for number in range(200):
            env.reset(seed=0, options={"task": env.tasks(split)[number]})
            ended = False
            while not ended:
                *_, terminated, truncated, info = env.step(env.expert())
                ended = terminated or truncated
            assert info["success"], env.task.id
            turns.append(info["turn"])
    assert sum(turns) / len(turns) >= 5


@given(number=st.integers(0, 10_000), words=st.lists(st.integers(0, 20), max_size=30))
def test_expert_recovers_from_wherever_wandering_has_led(number, words):
    env = Maze(max_turns=200)
    _, info = env.reset(seed=0, options={"task": env.tasks("train")[number]})
    for word in words:
        _, _, ended, _, info = env.step(info["admissible"][word % len(info["admissible"])])
        if ended:
            return
    for _ in range(40):
        _, _, ended, _, info = env.step(env.expert())
        if ended:
            break
    assert info["success"]


@given(number=st.integers(0, 10_000))
def test_each_admissible_command_and_no_other_does_something(number):
    env = Maze()
    _, info = env.reset(seed=0, options={"task": env.tasks("train")[number]})
    start = env.snapshot()
    commands = [f"{verb} {way}" for verb in ("go", "unlock") for way in ("north", "east", "south", "west")]
    for command in [*commands, "take key", "take gold", "", "go", "go up", "dance"]:
        env.restore(start)
        *_, after = env.step(command)
        assert after["understood"] == (command in info["admissible"])


def test_no_maze_of_one_split_is_in_another():
    env = Maze()
    contents = {split: {env.tasks(split)[i].content for i in range(1000)} for split in env.splits}
    assert not contents["train"] & contents["test"] and not contents["train"] & contents["validation"]
    assert not contents["validation"] & contents["test"]


def test_unseen_rooms_are_not_named():
    """What lies behind an exit must be found out by going there."""
    env = Maze()
    for number in range(50):
        text, _ = env.reset(seed=0, options={"task": env.tasks("train")[number]})
        colours = env.task.params["colours"]
        unseen = [c for room, c in enumerate(colours) if room != env.task.params["start"]]
        assert not any(colour in text for colour in unseen)


def test_unknown_difficulty_names_those_that_exist():
    with pytest.raises(ValueError, match="easy, medium, hard"):
        mt.make("manyturn/Maze-v0", difficulty="esay")
