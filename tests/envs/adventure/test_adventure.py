"""Adventures can be solved by what is seen, are honest about it, and differ in every split."""

import time
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_walks import WALK, ended, walk

from manyturn.envs.adventure.adventure_env import AdventureEnv
from manyturn.envs.adventure.cooking import Cooking
from manyturn.envs.adventure.treasure import Treasure
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import SPLITS, Task

pytestmark = pytest.mark.versions

ENVS: list[type[AdventureEnv]] = [Treasure, Cooking]
LEVELS = [(cls, level) for cls in ENVS for level in cls.levels]
LEVEL = {Treasure: "w2-o3-q4", Cooking: "easy"}


def begun(cls: type[AdventureEnv], level: str, number: int, split: str = "train", **args) -> AdventureEnv:
    env = cls(split, level, **args)
    env.reset(seed=0, options={"task": env.tasks(split)[number]})
    return env


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_the_expert_succeeds_and_luck_does_not(cls, level):
    solved, lucky, count = 0, 0, 25
    for split in cls.splits:
        for number in range(count):
            record = walk(begun(cls, level, number, split), [999] * 200)
            assert all(step[4]["understood"] for step in record)
            solved += record[-1][4]["success"]
            rng = generator("luck", number)
            lucky += walk(begun(cls, level, number, split), list(rng.integers(0, 700, 200)))[-1][4]["success"]
    assert solved >= 0.99 * count * len(cls.splits) and lucky <= 0.1 * count * len(cls.splits)


@pytest.mark.parametrize(("cls", "level"), LEVELS)
@settings(max_examples=15, deadline=None)
@given(number=st.integers(0, 5000), before=WALK, after=WALK)
def test_a_snapshot_continues_as_if_nothing_had_happened(cls, level, number, before, after):
    env = begun(cls, level, number)
    if ended(walk(env, before)):
        return
    data = env.snapshot()
    first = walk(env, after)
    other = cls("test", level)
    other.restore(data)
    assert other.snapshot() == data and walk(other, after) == first


@pytest.mark.parametrize(("cls", "level"), LEVELS)
@settings(max_examples=15, deadline=None)
@given(number=st.integers(0, 5000), choices=WALK)
def test_the_expert_recovers_from_wherever_wandering_has_led(cls, level, number, choices):
    env = begun(cls, level, number, max_turns=200)
    record = walk(env, [choice % 700 for choice in choices])
    if not ended(record):
        record = walk(env, [999] * 150)
    assert record[-1][4]["success"] or env.has_failed()


@pytest.mark.parametrize(("cls", "level"), LEVELS)
@settings(max_examples=15, deadline=None)
@given(number=st.integers(0, 5000), choices=WALK)
def test_listed_commands_and_no_others_are_understood(cls, level, number, choices):
    env = begun(cls, level, number, max_turns=500)
    if ended(walk(env, choices)):
        return
    data, listed = env.snapshot(), env.admissible()
    assert listed == sorted(set(listed))
    other = begun(cls, level, number + 1, max_turns=500)
    for command in {*listed, *other.admissible(), "", "go up", "dance", "take", "put it on it", "open\n", "\ud800"}:
        env.restore(data)
        assert env.step(command)[4]["understood"] == (command.strip() in listed)


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_turns_are_paid_once_and_less_than_the_goal(cls, level):
    for number in range(20):
        env = begun(cls, level, number, "test", rewards="turns")
        record = walk(env, [999] * 100)
        progress = [step[4]["progress"] for step in record]
        assert progress == sorted(progress) and progress[-1] == 1.0
        parts = [step[4]["reward_parts"] for step in record]
        dense = sum(value for of_turn in parts for name, value in of_turn.items() if name != "outcome")
        assert dense == pytest.approx(1 - 1 / len(env.milestones)) and record[-1][1] >= 1
        assert {name for of_turn in parts for name in of_turn} - {"outcome"} <= set(env.part_names or ())
        sparse = walk(begun(cls, level, number, "test"), [999] * 100)
        assert [step[1] for step in sparse] == [0.0] * (len(sparse) - 1) + [1.0]


def plan(task: Task) -> tuple:
    """The rooms' names and how they are joined."""
    return task.params["rooms"], *(tuple(way.split()[:3]) for way in task.params["ways"].split("|"))


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_no_task_is_in_two_splits_and_no_plan_of_the_unseen_split_in_another(cls, level):
    env = cls(difficulty=level)
    tasks = {split: [env.tasks(split)[i] for i in range(80)] for split in env.splits}
    assert len({task.content for of_split in tasks.values() for task in of_split}) == 80 * len(tasks)
    usual = {plan(task) for split in SPLITS for task in tasks[split]}
    assert not usual & {plan(task) for task in tasks["test_unseen"]}


@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_the_expert_does_not_know_what_it_was_not_shown(cls, level):
    """Moving unseen things among unseen places must not change what the expert does next."""
    compared = 0
    for number in range(30):
        env, rng = begun(cls, level, number), generator("hide", number)
        for _ in range(8):
            world = env.world
            house, data, command = world.house, env.snapshot(), env.expert()
            rooms = [room for room in range(len(house.rooms)) if not world.visited >> room & 1]
            places = rooms + [len(house.rooms) + i for i in range(len(house.furniture)) if not world.shown >> i & 1]
            for thing in range(len(house.things)):
                if not world.sees(thing) and world.places[thing] >= 0 and places:
                    world.places[thing] = places[int(rng.integers(len(places)))]
                    compared += 1
            assert env.expert() == command
            env.restore(data)
            if ended([env.step(command)]):
                break
    assert compared > 60


def dishes(task: Task) -> set[tuple[str, str, str]]:
    """Food, cut and cooking of each line of the recipe."""
    things = [text.partition(":")[0] for text in task.params["things"].split("|")]
    lines = [line.split() for line in task.params["recipe"].split("|")]
    return {(things[int(thing)], cut, cooked) for thing, cut, cooked in lines}


@pytest.mark.parametrize("level", Cooking.levels)
def test_dishes_of_the_unseen_split_occur_in_no_other(level):
    env = Cooking(difficulty=level)
    usual = {dish for split in SPLITS for i in range(200) for dish in dishes(env.tasks(split)[i])}
    unseen = {dish for i in range(200) for dish in dishes(env.tasks("test_unseen")[i])}
    assert len(unseen) > 30 and not usual & unseen


@pytest.mark.parametrize("level", Cooking.levels)
def test_a_recipe_is_not_known_before_it_is_read(level):
    for number in range(20):
        env = begun(Cooking, level, number)
        other = env.tasks("train")[number]
        lines = [f"{line.split()[0]} {number % 4} 0" for line in other.params["recipe"].split("|")]
        changed = Task("other", "train", {**other.params, "recipe": "|".join(lines)})
        twin = Cooking("train", level)
        texts = [env.observation, twin.reset(seed=0, options={"task": changed})[0]]
        while env.expert() != "read cookbook":
            assert env.expert() == twin.expert() and texts[0] == texts[1]
            texts = [env.step(env.expert())[0], twin.step(twin.expert())[0]]
        assert twin.expert() == "read cookbook" and env.admissible() == twin.admissible()


def test_an_ingredient_that_is_treated_wrongly_ends_the_episode_without_reward():
    failures = 0
    for number in range(30):
        env = begun(Cooking, "easy", number, rewards="turns")
        while not any(command.startswith(("cook ", "chop ")) for command in env.admissible()):
            env.step(env.expert())
        data, expert = env.snapshot(), env.expert()
        for command in env.admissible():
            env.restore(data)
            if command.startswith(("chop", "slice", "dice", "cook", "eat")) and command != expert:
                text, reward, terminated, _, info = env.step(command)
                assert not terminated or (reward == 0 and not info["success"] and "any more" in text)
                failures += terminated
    assert failures > 60


def test_a_quest_is_the_shortest_way_in_two_rooms():
    for number in range(25):
        env = begun(Treasure, "w2-o3-q4", number, max_turns=50)
        states, queue = {env.anchor()}, deque([(env.snapshot(), 0)])
        while queue:
            data, turns = queue.popleft()
            env.restore(data)
            for command in env.admissible():
                env.restore(data)
                *_, info = env.step(command)
                if info.get("success"):
                    assert turns + 1 == 4, env.task.id
                    queue.clear()
                    break
                if info["anchor"] not in states:
                    states.add(info["anchor"])
                    queue.append((env.snapshot(), turns + 1))


def test_another_size_has_its_rooms_objects_and_quest():
    env = Treasure("test", rooms=3, objects=5, quest=6)
    task = env.tasks("test")[7]
    assert task.id == "test/w3-o5-q6/7" and env.find(task.id) == task and env.max_turns == 24
    assert len(task.params["rooms"].split("|")) == 3 and len(task.params["things"].split("|")) == 5
    for number in range(20):
        assert walk(begun(Treasure, "w2-o3-q4", number, rooms=3, objects=5, quest=6), [999] * 30)[-1][4]["success"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"difficulty": "w9"}, "w2-o3-q4"),
        ({"rooms": 0}, "from 1 to"),
        ({"objects": 99}, "from 1 to"),
        ({"rooms": 1, "objects": 1, "quest": 30}, "shorter quest"),
        ({"quest": 0}, "longer"),
        ({"difficulty": "coin", "objects": 2}, "leave out objects"),
        ({"ingredients": 9}, "from 1 to 5"),
        ({"processing": "boil"}, "none, cut, cook, both"),
        ({"rewards": "dense"}, "outcome or turns"),
    ],
)
def test_a_wrong_option_names_the_right_ones(args, message):
    with pytest.raises(ValueError, match=message):
        (Cooking if {"ingredients", "processing"} & set(args) else Treasure)(**args)


PINNED = {
    Treasure: {"w2-o3-q4": "bc0308cf", "w4-o6-q8": "ca00070d", "w6-o9-q12": "2c1d97d1", "coin": "f69c7054"},
    Cooking: {"easy": "fb45ebd6", "medium": "b3f34f7a", "hard": "26c8c3c5"},
}


@pytest.mark.parametrize("cls", ENVS)
def test_tasks_stay_what_they_were_when_results_were_published(cls):
    assert {level: cls(difficulty=level).tasks("test")[3].content[:8] for level in cls.levels} == PINNED[cls]


@pytest.mark.deep
@pytest.mark.parametrize(("cls", "level"), LEVELS)
def test_ten_thousand_tasks_are_ten_thousand_problems_and_quickly_made(cls, level):
    tasks = cls(difficulty=level).tasks("train")
    began = time.process_time()
    contents = {tasks[number].content for number in range(10_000)}
    assert len(contents) == 10_000 and (time.process_time() - began) / 10_000 < 0.005


@pytest.mark.parametrize("cls", ENVS)
def test_memory_of_training_buys_nothing_on_the_unseen_split(cls):
    """What the expert did in each situation of training, and a random move in others."""
    table: dict[tuple[str, str], str] = {}

    def solved(split: str, *, learns: bool = False, remembers: bool = True) -> int:
        count = 0
        for number in range(150 if learns else 60):
            env, rng, has_ended = begun(cls, LEVEL[cls], number, split), generator("memory", split, number), False
            goal = env.observation.partition("Your task")[2]
            while not has_ended:
                listed, situation = env.admissible(), (goal, env.observation)
                guess = listed[int(rng.integers(len(listed)))]
                action = table.setdefault(situation, env.expert()) if learns else guess
                record = env.step(table.get(situation, action) if remembers else action)
                has_ended = ended([record])
            count += record[4]["success"]
        return count

    solved("train", learns=True)
    assert solved("train") > 30
    assert solved("test_unseen") <= solved("test_unseen", remembers=False) + 3
