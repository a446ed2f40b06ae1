"""A comparison that would credit a method with something else: settings, seeds, learning rates, or nothing."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import credit_methods
import credit_methods_table as table
from credit_methods_lines import append, cell_of, chosen_factor, idle_beside, read_lines
from credit_methods_plan import (
    BASE,
    CHOICE_SEEDS,
    FACTORS,
    OWN,
    WORLDS,
    Cell,
    choices,
    config_of,
    hypotheses,
    hypotheses_hash,
    order,
    peers,
    rows,
    warmup_of,
)
from credit_methods_results import Results, judged, one_sided_p
from credit_paid_worlds import PaidLong, PaidManners, PaidRepeated

import manyturn as mt
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.run import open_run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def settings(world, row):
    return config_of(Cell(world, row, 3, 1.0)).model_dump(mode="json")


def differing(one, other, path=()):
    if isinstance(one, dict) and isinstance(other, dict):
        return {p for key in one.keys() | other.keys() for p in differing(one.get(key), other.get(key), (*path, key))}
    return set() if one == other else {path}


@pytest.mark.parametrize(("world", "method"), list(product(WORLDS, ("gigpo", "ppo", "turn-ppo"))))
def test_a_stage_differs_from_the_base_in_its_own_sections_alone(world, method):
    found = differing(settings(world, BASE), settings(world, f"{method}/stage"))
    assert found and all(any(path[: len(own)] == own for own in OWN[method]) for path in found), found


@pytest.mark.parametrize("method", [row.partition("/")[0] for row in rows() if row.endswith("/companions")])
def test_companions_leave_the_stage_of_the_base(method):
    base, companions = (settings("tempting", row) for row in (BASE, f"{method}/companions"))
    assert companions["credit"]["advantage"] == base["credit"]["advantage"] and companions["value"] is None
    assert companions["rollout"] == base["rollout"] and differing(base, companions)


@pytest.mark.parametrize("method", OWN)
def test_the_full_row_is_the_recipe_as_it_is_published(method):
    """A setting that the base brings and the recipe does not name would be neither its own nor a companion's."""
    ours = settings("long", f"{method}/recipe")
    published = configure({"env": {"id": ours["env"]["id"]}}, load_recipe(method)).model_dump(mode="json")
    assert [stage for stage in ours["credit"]["rewards"] if stage["name"] != "part_weights"] == (
        published["credit"]["rewards"]
    )
    assert ours["credit"]["advantage"] == published["credit"]["advantage"] and ours["value"] == published["value"]
    assert ours["objective"] == published["objective"]
    episodes = (
        published["rollout"]["tasks"] * published["rollout"]["group"] if "rollout" in load_recipe(method) else 128
    )
    assert ours["rollout"]["tasks"] * ours["rollout"]["group"] == episodes


@pytest.mark.parametrize(("world", "row"), list(product(WORLDS, rows())))
def test_all_rows_have_one_budget_and_one_warm_up(world, row):
    cell = Cell(world, row, 3, 2.0)
    config, warmup, base = config_of(cell), warmup_of(cell), config_of(cell._replace(row=BASE))
    assert config.rollout.tasks * config.rollout.group == 128 and config.steps == base.steps
    same = ("env", "model", "agent", "sampling", "warmup", "evaluation", "seed")
    assert [getattr(config, name) for name in same] == [getattr(warmup, name) for name in same]
    own = differing(config.learner.model_dump(), base.learner.model_dump())
    published = load_recipe(row.partition("/")[0]).get("learner", {}) if row != BASE else {}
    assert {name for name, *_ in own} <= published.keys() - {"lr"}, "a schedule is a companion; the rate is chosen"
    assert config.learner.lr == 2 * config_of(cell._replace(factor=1.0)).learner.lr


@pytest.mark.parametrize("world", WORLDS)
def test_outcomes_alone_count_but_for_rewards_of_turns_and_their_gate(world):
    weights = dict.fromkeys(WORLDS[world][1], 0.0)
    for row in rows():
        stages = {stage["name"]: stage for stage in settings(world, row)["credit"]["rewards"]}
        assert stages.get("part_weights", {}).get("weights") == (None if row.startswith("gra/") else weights), row
        assert ("gated" in stages) == (row == "gra/recipe")
    parts = mt.make(f"{BENCHMARKS}/{WORLDS[world][0]}").unwrapped.part_names
    assert set(parts) == set(weights), "a part that is not named would count in all rows"


@pytest.mark.parametrize(("kind", "paid"), [(PaidRepeated, 0.4), (PaidLong, 0.0), (PaidManners, None)])
def test_a_world_that_pays_for_turns_is_the_same_world(kind, paid):
    assert [task.content for task in kind().tasks("test")[:50]] == [
        task.content for task in kind.__mro__[1]().tasks("test")[:50]
    ]
    env = mt.make(f"{BENCHMARKS}/credit_paid_worlds.py:{kind.__name__}")
    _, info = env.reset(seed=0, options={"task": env.unwrapped.tasks("test")[0]})
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.unwrapped.expert())
        total, ended = total + reward, terminated or truncated
    assert info["success"] and (paid is None or total == pytest.approx(1 + paid))


def test_pale_colours_pay_whether_they_offend_or_not():
    env = mt.make(f"{BENCHMARKS}/credit_paid_worlds.py:PaidManners")
    env.reset(seed=0)
    paid = {colour: env.step(f"show {colour}")[1] for colour in ("white", "pink", "grey", "red", "black")}
    assert paid == {"white": 0.3, "pink": 0.3, "grey": 0.3, "red": 0.0, "black": 0.0}
    assert {"pink", "grey"}.isdisjoint(PaidManners.polite)


def test_a_wrong_answer_costs_and_a_rung_pays_again_after_a_slide():
    long, ladder = (mt.make(f"{BENCHMARKS}/credit_paid_worlds.py:{name}") for name in ("PaidLong", "PaidRepeated"))
    long.reset(seed=0)
    wrong = "show red" if long.unwrapped.expert() != "show red" else "show blue"
    assert [long.step(action)[1] for action in (wrong, long.unwrapped.expert(), "shout")] == [-0.05, 0.0, 0.0]
    ladder.reset(seed=0)
    slide = "step red" if ladder.unwrapped.task.params["colours"][1] != "red" else "step blue"
    first = ladder.unwrapped.expert()
    assert [ladder.step(action)[1] for action in (first, slide, first)] == [0.1, 0.0, 0.1]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_no_row_is_refused_by_its_world_after_hours(world):
    async def begin_all():
        for row in rows():
            async with open_run(config_of(Cell(world, row, 0, 1.0), tiny=True)):
                pass

    asyncio.run(begin_all())


def test_hypotheses_are_few_and_about_what_is_run():
    written = hypotheses()
    assert len(written["hypotheses"]) <= 10 and written["seeds"] >= 8
    for h in written["hypotheses"]:
        assert h["world"] in WORLDS and {h["row"], h["against"]} <= set(rows()) and h["sign"] in "+-", h
    # The smallest p that the seeds allow has to be small enough after Holm, or nothing could be shown.
    assert len(written["hypotheses"]) / 2 ** written["seeds"] <= written["level"]


def test_hypotheses_are_older_than_the_results():
    """Each line names the file's hash, and the commit that it was made from has that file."""
    found = read_lines(credit_methods.OUT)
    for commit, stated in {(li["commit"], li["hypotheses"]) for li in found}:
        command = ["git", "show", f"{commit}:benchmarks/credit_methods.toml"]
        shown = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, check=False)
        if shown.returncode:
            pytest.skip("no history here: results name commits, which only a full clone has")
        assert hashlib.sha256(shown.stdout).hexdigest()[:16] == stated == hypotheses_hash()


def test_rates_are_chosen_on_seeds_that_do_not_count():
    assert not set(CHOICE_SEEDS) & set(range(hypotheses()["seeds"])) and len(CHOICE_SEEDS) >= 2
    assert {cell.seed for world in WORLDS for cell in choices(world)} == set(CHOICE_SEEDS)
    ran = []
    for row in order():
        assert set(peers(row)) <= set(ran), "a row is run after those that it has to differ from"
        ran.append(row)


def line(world, row, seed, successes="0120", factor=1.0, **other):
    return {
        "world": world, "row": row, "seed": seed, "factor": factor, "panel": "p", "repeats": 2, "successes": successes,
        "before": 0.3, "training": [0.3, 0.4], "trained_tokens": len(row), "weights": f"{world} {row} {seed} {factor}",
        "hypotheses": hypotheses_hash(), "commit": "abc1234", "machine": "m", "date": "2026-11-23", "cpu_seconds": 9.0,
        "warmup_seconds": 0.0, "command": "python benchmarks/credit_methods.py RUN-FOLDER",
    }  # fmt: skip


@pytest.mark.parametrize("alike", [{"weights": "same"}, {"training": [0.1], "successes": "0000", "trained_tokens": 77}])
def test_a_method_that_did_nothing_is_known_by_its_weights_or_by_its_play(alike):
    base = line("long", BASE, 0) | alike
    assert idle_beside(line("long", "gigpo/stage", 0) | alike, [base]) == BASE
    assert idle_beside(line("long", "gigpo/stage", 0), [base]) is None
    for other in ({"seed": 1}, {"factor": 2.0}, {"world": "manners"}):
        assert idle_beside(line("long", "gigpo/stage", 0) | alike | other, [base]) is None
    companions = line("long", "gigpo/companions", 0) | alike
    assert idle_beside(line("long", "gigpo/recipe", 0) | alike, [companions]) == "gigpo/companions", "an idle stage"
    assert idle_beside(line("long", "ppo/recipe", 0) | alike, [companions]) is None


def test_a_rate_is_chosen_by_the_last_steps_once_all_are_there():
    def choosing(factor, last):
        return [line("long", BASE, seed, factor=factor, training=last) | {"training": last} for seed in CHOICE_SEEDS]

    found = [*choosing(1.0, [0.9, *[0.5] * 3]), *choosing(2.0, [0.1, *[0.6] * 3]), *choosing(4.0, [0.0, *[0.6] * 3])]
    assert chosen_factor(found, "long", BASE) == 2.0, "of equal ones the smallest"
    assert chosen_factor(found[:-1], "long", BASE) is None and chosen_factor(found, "manners", BASE) is None
    counting = [line("long", BASE, 0, factor=0.5) | {"training": [1.0]}]
    assert chosen_factor([*found, *counting], "long", BASE) == 2.0, "seeds that count do not choose"


def test_a_line_that_was_cut_off_is_removed_by_the_next(tmp_path):
    path = tmp_path / "lines.jsonl"
    append(path, line("long", BASE, 0))
    with path.open("a") as file:
        file.write('{"world": "lo')
    assert [cell_of(found).seed for found in read_lines(path)] == [0]
    append(path, line("long", BASE, 1))
    assert [cell_of(found).seed for found in read_lines(path)] == [0, 1]


def all_seeds(world, row, successes):
    chosen = [line(world, row, seed, factor=factor) for seed in CHOICE_SEEDS for factor in FACTORS]
    return chosen + [line(world, row, seed, text) for seed, text in enumerate(successes)]


def test_nothing_is_judged_without_its_seeds_and_what_is_missing_is_named():
    found = [*all_seeds("repeated", BASE, ["0000"] * 8), *all_seeds("repeated", "gigpo/stage", ["1111"] * 8)]
    by_name = {h["name"]: (p, adjusted, verdict) for h, _, p, adjusted, verdict in judged(Results(found))}
    assert by_name["H1"] == (1 / 256, len(by_name) / 256, "shown"), "those that are open count in Holm's number"
    assert all(verdict[2] == "open: 0 of 8 seeds" for name, verdict in by_name.items() if name != "H1")
    short = table.show([li for li in found if (li["row"], li["seed"]) != ("gigpo/stage", 7)])
    assert "open: 7 of 8 seeds" in short and "shown" not in short
    assert "**Incomplete: 645 of 672 cells are missing.**" in short
    assert (
        "`gigpo/stage` 1 of 8 seeds" in short and "manners: 72 cells that choose learning rates, all 8 seeds" in short
    )


def test_a_row_that_did_nothing_is_named_and_not_missing():
    found = [li for world in WORLDS for row in rows() for li in all_seeds(world, row, ["0120"] * 8)]
    assert "**Complete.**" in table.show(found) and "Missing" not in table.show(found)
    left = [li for li in found if (li["world"], li["row"]) != ("long", "gra/recipe")]
    idle = line("long", "gra/recipe", CHOICE_SEEDS[0], factor=0.5) | {"beside": BASE}
    shown = table.show(left, [idle])
    assert "**Complete.**" in shown
    assert "`gra/recipe` is left out of long: in its first cell it ended as `base`." in shown
    assert "**Incomplete: 14 of 672 cells are missing.**" in table.show(left)


def test_a_difference_to_the_other_side_is_not_shown():
    found = [*all_seeds("repeated", BASE, ["1111"] * 8), *all_seeds("repeated", "gigpo/stage", ["0000"] * 8)]
    [(_, difference, p, _, verdict)] = [each for each in judged(Results(found)) if each[0]["name"] == "H1"]
    assert difference.by_seed.mean == -0.5 and (p, verdict) == (1.0, "not shown")
    assert one_sided_p([-0.1] * 8, "-") == 1 / 256


def test_a_gain_is_the_sum_of_its_parts_over_the_seeds_that_have_all_rows():
    found = [*all_seeds("long", BASE, ["0000"] * 3), *all_seeds("long", "gigpo/stage", ["0011"] * 3)]
    found += all_seeds("long", "gigpo/recipe", ["1111"] * 2)
    split = Results(found).split("long", "gigpo")
    assert (split.gain.seeds, split.gain.by_seed.mean) == (2, 0.5)
    assert (split.stage.by_seed.mean, split.companions.by_seed.mean) == (0.25, 0.25)
    gated = [*all_seeds("long", BASE, ["1111"]), *all_seeds("long", "gra/companions", ["0000"])]
    split = Results([*gated, *all_seeds("long", "gra/recipe", ["2222"])]).split("long", "gra")
    assert (split.stage.by_seed.mean, split.companions.by_seed.mean) == (1.0, -0.5), "the gate acts on its companions"


def test_an_interval_over_tasks_counts_tasks():
    found = [*all_seeds("long", BASE, ["0000", "0000"]), *all_seeds("long", "gigpo/stage", ["0022", "0022"])]
    difference = Results(found).difference("long", "gigpo/stage", BASE)
    assert difference.by_seed.low == difference.by_seed.high == 0.5
    assert difference.by_task.n_tasks == 4 and difference.by_task.low < 0 < difference.by_task.high


def test_the_tables_of_other_hypotheses_are_not_made():
    with pytest.raises(ValueError, match=r"take credit_methods\.toml back"):
        table.show([line("long", BASE, 0) | {"hypotheses": "other"}])


def test_the_figure_is_drawn_of_what_is_there(tmp_path):
    found = [*all_seeds("long", BASE, ["0000"] * 3), *all_seeds("long", "gigpo/stage", ["0011"] * 3)]
    found += all_seeds("long", "gigpo/recipe", ["1111"] * 2)
    table.publish(found, tmp_path / "found.jsonl")
    assert (tmp_path / "found.png").stat().st_size > 10_000
    assert "| long | gigpo | 2 | +0.500 " in (tmp_path / "found.md").read_text()


def begin(folder, out, *words):
    command = [sys.executable, "benchmarks/credit_methods.py", str(folder), "--tiny", "--out", str(out), *words]
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
    return subprocess.Popen(
        command, cwd=BENCHMARKS.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_a_plan_that_is_killed_and_shared_by_processes_has_each_cell_once_and_the_same(tmp_path):
    asked = ("--worlds", "tempting", "--rows", "gra/recipe", "--seeds", "1")
    killed = begin(tmp_path / "a", tmp_path / "a.jsonl", *asked)
    next(text for text in killed.stdout if "cells are left" in text)
    killed.kill()
    killed.wait()
    shared = [begin(tmp_path / "a", tmp_path / "a.jsonl", *asked) for _ in range(2)]
    said = [process.communicate()[0] for process in shared]
    assert [process.returncode for process in shared] == [0, 0], said
    alone = begin(tmp_path / "b", tmp_path / "b.jsonl", *asked)
    assert "refused, since the method did nothing: tempting gra/recipe" in alone.communicate()[0]

    volatile = {"cpu_seconds", "warmup_seconds", "date", "commit"}  # the tree may change while a test runs
    found = [
        {cell_of(li): {k: v for k, v in li.items() if k not in volatile} for li in read_lines(tmp_path / name)}
        for name in ("a.jsonl", "b.jsonl")
    ]
    assert len(read_lines(tmp_path / "a.jsonl")) == len(found[0]) == 2 * len(FACTORS) * len(CHOICE_SEEDS) + 2
    assert found[0] == found[1] and {cell.row for cell in found[0]} == {BASE, "gra/companions"}

    spoiled = [li | {"commit": "0000000"} for li in read_lines(tmp_path / "b.jsonl")]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(li) + "\n" for li in spoiled))
    refused = begin(tmp_path / "b", tmp_path / "b.jsonl", *asked)
    assert "of commit 0000000, whose code differs" in refused.communicate()[0] and refused.returncode == 1


def test_a_trial_is_no_result(monkeypatch, capsys, tmp_path):
    out = BENCHMARKS / "results" / "credit_methods.jsonl"
    monkeypatch.setattr(sys, "argv", ["credit_methods.py", str(tmp_path), "--tiny", "--out", str(out)])
    with pytest.raises(SystemExit):
        credit_methods.main()
    assert "--tiny measures nothing" in capsys.readouterr().err and not any(tmp_path.iterdir())
