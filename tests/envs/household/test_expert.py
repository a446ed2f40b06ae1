"""The expert must succeed, and must not know what the agent was not shown."""

from dataclasses import replace

import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.household.expert import next_command
from manyturn.envs.household.layouts import LEVELS
from manyturn.envs.household.problem import bits
from manyturn.envs.household.task_generator import HouseholdTasks, build
from manyturn.envs.household.text import GRAMMARS
from manyturn.envs.household.world import Tables, World

pytestmark = pytest.mark.versions

CASES = [(level, kind) for level in LEVELS for kind in LEVELS[level].kinds]


def solve(world: World, turns: int) -> bool:
    for _ in range(turns):
        command = next_command(world)
        assert world.act(command)[1], f"the expert's {command!r} is not possible"
        if world.won:
            return True
    return False


@pytest.mark.parametrize(("level", "kind"), CASES)
def test_the_expert_reaches_each_kind_of_goal_within_the_turns(level: str, kind: str) -> None:
    solved = 0
    for split in ("train", "test_unseen"):
        tasks = HouseholdTasks(split, level, [kind])
        for i in range(100):
            solved += solve(World(Tables(build(tasks[i].params), GRAMMARS["move"])), LEVELS[level].turns)
    assert solved >= 0.99 * 200


@pytest.mark.parametrize(("level", "kind"), [("medium", kind) for kind in LEVELS["medium"].kinds])
def test_the_expert_recovers_from_random_commands(level: str, kind: str) -> None:
    tasks = HouseholdTasks("train", level, [kind])
    for i in range(25):
        rng = generator("wander", kind, i)
        world = World(Tables(build(tasks[1000 + i].params), GRAMMARS["put"]))
        for _ in range(15):
            listed = world.admissible()
            local = [c for c in listed if not c.startswith("go to")]
            pool = local if rng.random() < 0.6 else listed
            if not world.won:
                world.act(pool[int(rng.integers(len(pool)))])
        assert world.won or solve(world, 60)


def test_the_expert_does_not_know_what_it_was_not_shown() -> None:
    """Moving unseen objects among unseen receptacles must not change what the expert does next."""
    compared = 0
    for i in range(40):
        problem = build(HouseholdTasks("train", "hard")[i].params)
        rng = generator("hide", i)
        world = World(Tables(problem, GRAMMARS["move"]))
        for _ in range(40):
            hidden = [r for r in range(len(world.contents)) if not world.visited >> r & 1]
            if world.won or len(hidden) < 2:
                break
            command = next_command(world)
            contents = list(world.contents)
            objects = [o for r in hidden for o in bits(contents[r])]
            for r in hidden:
                contents[r] = 0
            for o in objects:
                contents[hidden[int(rng.integers(len(hidden)))]] |= 1 << o
            other = World(Tables(replace(problem, contents=tuple(contents)), GRAMMARS["move"]))
            other.place, other.held, other.opened, other.visited = world.place, world.held, world.opened, world.visited
            other.clean, other.hot, other.cool, other.toggled = world.clean, world.hot, world.cool, world.toggled
            assert next_command(other) == command
            compared += 1
            world.act(command)
    assert compared > 200
