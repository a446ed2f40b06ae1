"""A benchmark that would compare something else than it says: worlds, budgets, warm-ups and pairs."""

import asyncio
import json

import pytest

import manyturn as mt
from benchmarks.credit import rate_grid
from benchmarks.credit.settings import COMMON, WORLDS, WORLDS_FILE
from benchmarks.kit.comparison_run import Start, config_changes, finish, held_out, run_cell, stored_line
from manyturn.envs.conformance.check_runner import check
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

NAMES = ("Tempting", "Long", "Repeated", "Decisive", "Shortcut")

pytestmark = pytest.mark.slow


def begun(name, number=0):
    env = mt.make(f"{WORLDS_FILE}:{name}")
    env.reset(seed=0, options={"task": env.unwrapped.tasks("test")[number]})
    return env


def play(env, choose):
    """Success and return of an episode; ``choose`` says what to do in a world."""
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(choose(env.unwrapped))
        total, ended = total + reward, terminated or truncated
    return info["success"], total


def wrong(world):
    return next(a for a in world.admissible() if a.split()[-1] != world.right_colour())


@pytest.mark.parametrize("name", NAMES)
def test_world_keeps_the_contract(name):
    report = check(f"{WORLDS_FILE}:{name}", samples=5)
    assert report.passed, report


@pytest.mark.parametrize("name", NAMES)
def test_world_fills_the_panels_with_different_problems(name):
    env = begun(name).unwrapped
    sizes = {"test": rate_grid.BASE["evaluation"]["limit"], "validation": COMMON["warmup"]["check_episodes"]}
    for split, count in sizes.items():
        assert len({task.content for task in env.tasks(split)}) >= count


def test_polishing_pays_more_than_the_work_and_never_succeeds():
    assert play(begun("Tempting"), lambda world: world.expert()) == (True, pytest.approx(1.4))
    success, earned = play(begun("Tempting"), lambda world: "polish")
    assert not success and earned > 2 * 1.4


def test_work_that_is_finished_after_polishing_is_better_than_both():
    """What makes the gate the mend: behind it success and polishing do not contradict each other."""
    spare = begun("Tempting").unwrapped
    spare = spare.max_turns - spare.goal - 1
    success, earned = play(begun("Tempting"), lambda world: "polish" if world.turn < spare else world.expert())
    assert success and earned == pytest.approx(1.4 + 0.5 * spare)


@pytest.mark.parametrize(("slips", "success"), [(0, True), (3, True), (4, False)])
def test_long_forgives_three_wrong_answers(slips, success):
    found = play(begun("Long"), lambda world: wrong(world) if world.turn < slips else world.expert())
    assert found == (success, float(success))


@pytest.mark.parametrize("rung", range(4))
def test_a_slide_comes_back_to_the_very_same_state(rung):
    env = begun("Repeated")
    start = env.unwrapped.anchor()
    seen = {env.step(env.unwrapped.expert())[4]["anchor"] for _ in range(rung)}
    info = env.step(wrong(env.unwrapped))[4]
    assert info["anchor"] == start and start not in seen and len(seen) == rung


@pytest.mark.parametrize("number", range(20))
def test_nothing_but_the_answers_at_mill_and_ford_decides(number):
    for erring in ((), ("Mill",), ("Ford",), ("Mill", "Ford")):

        def choose(world, erring=erring):
            elsewhere = world.right_colour() is None
            return "take grey" if elsewhere else wrong(world) if world.asking in erring else world.expert()

        env = begun("Decisive", number)
        assert play(env, choose) == (not erring, float(not erring)), erring
        assert env.unwrapped.turn == 8, "a wrong way must not end the walk before its end"


def test_wading_arrives_as_often_as_the_ford_is_dry_and_naming_always():
    env = mt.make(f"{WORLDS_FILE}:Shortcut")
    tasks = env.unwrapped.tasks("train")[:400]
    arrived = []
    for task in tasks:
        env.reset(seed=0, options={"task": task})
        success, _ = play(env, lambda world: f"name {world.right_colour()}")
        assert success
        env.reset(seed=0, options={"task": task})
        arrived.append(play(env, lambda world: "wade")[0])
    assert 0.5 < sum(arrived) / len(arrived) < 0.7


SMALL = {
    "model": {"name": "tiny", "width": 8, "layers": 1, "heads": 1, "sample_tasks": 4},
    "warmup": {"episodes": 40, "until_success": 0.0, "check_every": 4, "check_episodes": 4, "max_updates": 4},
    "evaluation": {"limit": 4, "repeats": 2, "every": 1, "every_limit": 4},
    "checkpoint_every": 1,
}


def config(*recipes, steps=2):
    """A run of seconds."""
    layers = [COMMON, WORLDS["decisive"], *map(load_recipe, recipes), SMALL]
    return configure(stacked(layers), {"seed": 1, "steps": steps, "rollout": {"tasks": 2}})


@pytest.mark.parametrize("recipes", [("grpo",), ("ppo", "spa-alongside")])
def test_a_planted_warm_up_gives_the_bits_of_a_run_that_warmed_up_itself(tmp_path, recipes):
    """With a KL reference (grpo) and with heads (ppo and spa-alongside), which the shared warm-up does not have."""
    start, planned = Start(config(steps=0), tmp_path / "warmup"), config(*recipes)
    asyncio.run(finish(*start))

    def figures(folder):
        return {"summary": json.loads((folder / "summary.json").read_text()), **held_out(folder)}

    line = run_cell(start, planned, tmp_path, figures)
    asyncio.run(train(planned, tmp_path / "separate"))
    separate = json.loads((tmp_path / "separate" / "summary.json").read_text())
    for summary in (line["summary"], separate):
        del summary["seconds"], summary["peak_memory_mb"], summary["warmup"]["cpu_seconds"]
    assert line["summary"] == separate
    assert sum(map(int, line["successes"])) / 8 == separate["after"]["success"] and len(line["successes"]) == 4


def test_a_folder_of_another_configuration_is_not_resumed(tmp_path):
    asyncio.run(finish(config(steps=0), tmp_path / "run"))
    with pytest.raises(SystemExit, match="another RUN-FOLDER"):
        asyncio.run(finish(config("grpo"), tmp_path / "run"))


def test_a_stored_line_is_made_once_and_names_no_folder_of_this_machine(tmp_path):
    made = []

    def make():
        made.append(config_changes(config("grpo")))
        return made[-1]

    first, second = (stored_line(tmp_path / "lines" / "grpo-1.json", make) for _ in range(2))
    assert first == second and len(made) == 1 and str(WORLDS_FILE.parent) not in json.dumps(first)
    assert first["credit"]["advantage"]["name"] == "grpo", "a part's name stays with its options"
