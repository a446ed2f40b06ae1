"""A benchmark that would compare something else than it says: worlds, budgets, warm-ups and pairs."""

import asyncio
import json
import math
import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import credit_cell
import credit_plan
import credit_table
from credit import beyond, curve, result
from credit_plan import COMMON, EPISODES, EXTRA, METHODS, OTHERS, WORLDS, WORLDS_FILE, Cell, config_of, plan, warmup_of
from credit_worlds import COLOURS

import manyturn as mt
from manyturn.envs.conformance.check import check
from manyturn.envs.contract.options import ConfigError
from manyturn.recipes import methods
from manyturn.trainers.run.loop.loop import train

NAMES = ("Tempting", "Long", "Repeated", "Decisive", "Shortcut", "Manners", "Clues")

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
    return next(a for a in world.admissible() if a.split()[-1] != world.wanted())


@pytest.mark.parametrize("name", NAMES)
def test_world_keeps_the_contract(name):
    report = check(f"{WORLDS_FILE}:{name}", samples=5)
    assert report.passed, report


@pytest.mark.parametrize("name", NAMES)
def test_world_fills_the_panels_with_different_problems(name):
    env = begun(name).unwrapped
    wanted = {"test": COMMON["evaluation"]["limit"], "validation": COMMON["warmup"]["check_episodes"]}
    for split, count in wanted.items():
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
            elsewhere = world.wanted() is None
            return "take grey" if elsewhere else wrong(world) if world.asking in erring else world.expert()

        env = begun("Decisive", number)
        assert play(env, choose) == (not erring, float(not erring)), erring
        assert env.unwrapped.turn == 8, "a wrong way must not end the walk before its end"


@pytest.mark.parametrize("said", COLOURS)
def test_one_offence_loses_the_guests_whenever_it_is_given(said):
    for at in (0, 7, 15):
        env = begun("Manners", at)
        success, _ = play(env, lambda world, at=at: f"show {said}" if world.done == at else world.expert())
        assert success == (said in env.unwrapped.polite) and env.unwrapped.turn == 16


@pytest.mark.parametrize("number", range(8))
def test_a_note_is_found_in_its_owners_place_alone_and_within_four_looks(number):
    env = begun("Clues", number)
    world = env.unwrapped
    empty = [place for place in world.places if place != world.hidden]
    for place in empty[:3]:
        assert world.wanted() not in env.step(f"look {place}")[0]
    assert world.wanted() in env.step(f"look {world.hidden}")[0]
    assert env.step(world.answer())[4]["success"]


def test_wading_arrives_as_often_as_the_ford_is_dry_and_naming_always():
    env = mt.make(f"{WORLDS_FILE}:Shortcut")
    tasks = env.unwrapped.tasks("train")[:400]
    arrived = []
    for task in tasks:
        env.reset(seed=0, options={"task": task})
        success, _ = play(env, lambda world: f"name {world.wanted()}")
        assert success
        env.reset(seed=0, options={"task": task})
        arrived.append(play(env, lambda world: "wade")[0])
    assert 0.5 < sum(arrived) / len(arrived) < 0.7


@pytest.mark.parametrize(("world", "method"), list(product(WORLDS, (*METHODS, "grpo+gated", "loop"))))
def test_every_method_has_one_budget_and_the_worlds_settings(world, method):
    config, same = config_of(Cell(world, method, 3)), warmup_of(Cell(world, method, 3))
    episodes = config.rollout.tasks * config.rollout.group
    assert EPISODES - config.rollout.group < episodes <= EPISODES
    assert (config.steps, config.seed) == (COMMON["steps"], 3)
    assert (config.env, config.evaluation, config.warmup) == (same.env, same.evaluation, same.warmup)


def test_no_recipe_is_passed_over():
    compared = {layer for method in (*METHODS, *OTHERS, *EXTRA["clues"]) for layer in method.split("+")}
    later = {
        "graphgpo",
        "g2po",
        "hgpo",
        "rtmc",
        "bpo",
        "aepo-arbitrary",
        "situation-gae",
    }  # which the audit of credit places
    assert set(methods()) - compared == {"scaling-inter", "spa-alongside", "stratified-search", *later}


def test_a_layer_is_compared_with_what_it_is_laid_on():
    assert [credit_table.against(name) for name in ("gigpo", "grpo+gated", "ppo+spa")] == ["grpo", "grpo", "ppo"]


def test_a_wrong_name_is_told():
    with pytest.raises(ConfigError, match="household"):
        config_of(Cell("houshold", "grpo", 0))
    with pytest.raises(ConfigError, match="gigpo"):
        config_of(Cell("long", "gipgo", 0))


def test_a_benchmark_that_is_cut_off_has_all_methods_of_its_first_seeds():
    groups = plan(["long", "tempting"], ["grpo", "ppo"], 2)
    assert [(group[0].world, group[0].seed) for group in groups] == [
        ("long", 0), ("tempting", 0), ("long", 1), ("tempting", 1)
    ]  # fmt: skip
    assert [cell.method for cell in groups[1]] == ["grpo", "ppo", *EXTRA["tempting"]]


@pytest.fixture
def small(monkeypatch):
    """A benchmark of seconds."""
    changes = {
        "model": {"name": "tiny", "width": 8, "layers": 1, "heads": 1, "sample_tasks": 4},
        "warmup": {"episodes": 40, "until_success": 0.0, "check_every": 4, "check_episodes": 4, "max_updates": 4},
        "evaluation": {"limit": 4, "repeats": 2, "every": 1, "every_limit": 4},
        "steps": 2,
        "checkpoint_every": 1,
    }
    monkeypatch.setattr(credit_plan, "COMMON", COMMON | changes)
    monkeypatch.setattr(credit_plan, "EPISODES", 16)


@pytest.mark.parametrize("method", ["grpo", "ppo+spa-alongside"])
def test_a_planted_warm_up_gives_the_bits_of_a_run_that_warmed_up_itself(small, tmp_path, method):
    """With a KL reference (grpo) and with heads (ppo+spa-alongside), which the shared warm-up knows nothing of."""
    cell = Cell("decisive", method, 1)
    asyncio.run(credit_cell.run_cell(tmp_path, cell))
    asyncio.run(train(config_of(cell), tmp_path / "alone"))
    planted, alone = (
        json.loads((f / "summary.json").read_text()) for f in (tmp_path / cell.folder, tmp_path / "alone")
    )
    assert {**planted, "seconds": 0} == {**alone, "seconds": 0}
    kept = result(tmp_path, cell)
    assert sum(map(int, kept["successes"])) / 8 == kept["after"] == alone["after"]["success"]
    assert [point[0] for point in kept["curve"]] == [0, 1, 2] and len(kept["successes"]) == 4
    assert str(tmp_path) not in json.dumps(kept) and str(WORLDS_FILE.parent) not in json.dumps(kept)
    assert kept["config"]["credit"]["advantage"]["name"] == config_of(cell).credit.advantage.name


@pytest.mark.parametrize("method", ["gigpo", "gigpo+understood", "grpo+epo", "dr-grpo"])
def test_what_a_recipe_settles_for_the_time_afterwards_leaves_the_warm_up_shared(method):
    cell = Cell("long", method, 0)
    assert credit_plan.shares_warmup(config_of(cell), warmup_of(cell))


def test_a_method_that_warms_up_otherwise_does_not_share():
    config, warmup = config_of(Cell("long", "grpo", 0)), warmup_of(Cell("long", "grpo", 0))
    assert credit_plan.shares_warmup(config, warmup)
    for section, change in (("learner", {"weight_decay": 0.1}), ("warmup", {"lr": 0.123}), ("model", {"width": 32})):
        other = config.model_copy(update={section: getattr(config, section).model_copy(update=change)})
        assert not credit_plan.shares_warmup(other, warmup), section


def test_a_folder_of_another_configuration_is_not_continued(small, tmp_path):
    cell = Cell("decisive", "grpo", 0)
    asyncio.run(credit_cell.run_cell(tmp_path, cell, 1))
    with pytest.raises(SystemExit, match="another RUN-FOLDER"):
        asyncio.run(credit_cell.run_cell(tmp_path, cell, 2))


def line(world, method, seed, successes, panel="p"):
    return {
        "world": world, "method": method, "seed": seed, "panel": panel, "repeats": 2, "successes": successes,
        "before": 0.3, "training": [0.3, 0.4], "curve": [[0, 0, 0, 0.0, 0.3], [5, 40, 1000, 2.0, 0.5]],
    }  # fmt: skip


def test_differences_are_paired_by_seed_and_unpaired_seeds_left_out():
    base = [line("long", "grpo", seed, text) for seed, text in enumerate(("0000", "1111", "2222"))]
    ours = [line("long", "gigpo", seed, text) for seed, text in enumerate(("0001", "1112"))]
    row = credit_table.rows([*ours, *base])[1]
    assert row.method == "gigpo" and row.difference.mean == pytest.approx(1 / 8)
    assert row.difference.n_tasks == 2 and row.difference.low == row.difference.high, "seeds lie apart, pairs do not"
    assert math.isnan(row.detectable) and row.seeds_wanted is None


@pytest.mark.parametrize(("seeds", "p"), [(5, ""), (6, "0.062")])
def test_a_p_that_cannot_be_small_is_left_out_and_does_not_count_among_the_others(seeds, p):
    found = [line("long", "grpo", seed, "0000") for seed in range(seeds)]
    found += [line("long", "gigpo", seed, "1112") for seed in range(seeds)]
    found += [line("long", "ppo", seed, "1100") for seed in range(seeds)]
    found.append(line("long", "opo", 0, "0000"))
    cells = [[cell.strip() for cell in row.split("|")] for row in credit_table.show(found).splitlines()[3:]]
    assert {row[2]: row[8] for row in cells} == {"gigpo": p, "opo": "", "ppo": p}


def test_seeds_wanted_are_those_at_which_the_wanted_difference_is_detectable():
    ours = {str(seed): [0.5 + 0.1 * (-1) ** seed] for seed in range(8)}
    theirs = {str(seed): [0.5] for seed in range(8)}
    wanted = credit_table.power(ours, theirs)["seeds_wanted"]
    spread = 0.1 * math.sqrt(8 / 7)
    assert 2.8016 * spread / math.sqrt(wanted) <= 0.05 < 2.8016 * spread / math.sqrt(wanted - 1)


def test_different_panels_are_not_compared():
    with pytest.raises(ValueError, match="different panels"):
        credit_table.rows([line("long", "grpo", 0, "0000"), line("long", "gigpo", 0, "0000", panel="q")])


def test_the_figure_is_drawn_for_every_world(tmp_path):
    found = [line(world, method, 0, "0120") for world in ("long", "decisive") for method in ("grpo", "gigpo")]
    credit_table.draw(found, tmp_path / "credit.png")
    assert (tmp_path / "credit.png").stat().st_size > 10_000


def test_the_curve_counts_from_the_warm_up_on():
    def step(number, version):
        seconds = {"rollout_seconds": 1.0, "learn_seconds": 0.5}
        return {"phase": "train", "step": number, "version": version, "trained_tokens": 100, **seconds}

    check = {"phase": "validation", "step": 2, "success": 0.5}
    warmup = {"phase": "warmup", "updates": 25, "step": 0, "success": 0.25}
    assert curve([warmup, step(1, 33), step(2, 41), check], 0.3) == [[0, 0, 0, 0.0, 0.3], [2, 16, 200, 3.0, 0.5]]


def test_what_differs_from_the_defaults_keeps_the_name_of_its_part():
    defaults = {"credit": {"advantage": {"name": "gigpo", "gamma": 0.9}, "rewards": []}, "steps": 60}
    values = {"credit": {"advantage": {"name": "gigpo", "gamma": 0.5}, "rewards": []}, "steps": 60}
    assert beyond(values, defaults) == {"credit": {"advantage": {"name": "gigpo", "gamma": 0.5}}}
    assert beyond(defaults, defaults) == {}
