"""A comparison that would credit a method with something else: settings, seeds, learning rates, or nothing."""

import asyncio
import hashlib
import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import manyturn as mt
from benchmarks.credit.methods import __main__ as methods
from benchmarks.credit.methods import table
from benchmarks.credit.methods.__main__ import Selection, open_cells
from benchmarks.credit.methods.plan import (
    BASE,
    BOUNDS,
    CHOICE_SEEDS,
    FACTORS,
    PARTS,
    WORLDS,
    Cell,
    choices,
    config_of,
    hypotheses,
    hypotheses_hash,
    order,
    peers,
    plan_hash,
    rows,
    seeds,
    warmup_of,
)
from benchmarks.credit.methods.result_store import Choice, append, cell_of, choice, idle_as, read_lines
from benchmarks.credit.methods.results import Results, judged, one_sided_p
from benchmarks.credit.settings import WORLDS_FILE
from benchmarks.credit.worlds import PaidLong, PaidManners, PaidRepeated
from benchmarks.kit.comparison_run import config_changes
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.setup.run_builder import open_run

ROOT = Path(__file__).parents[3]
# Files of the plan at the commit of the results.
FORMER_PLAN = ("credit_methods_plan.py", "credit_plan.py", "credit_worlds.py", "credit_paid_worlds.py")


def settings(world, row):
    return config_of(Cell(world, row, 3, 1.0)).model_dump(mode="json")


def differing(one, other, path=()):
    if isinstance(one, dict) and isinstance(other, dict):
        return {p for key in one.keys() | other.keys() for p in differing(one.get(key), other.get(key), (*path, key))}
    return set() if one == other else {path}


@pytest.mark.parametrize(("method", "part"), [(method, part) for method in PARTS for part in PARTS[method]])
def test_a_part_differs_from_the_base_in_its_own_settings_alone(method, part):
    for world in WORLDS:
        found = differing(settings(world, BASE), settings(world, f"{method}/{part}"))
        assert found and all(any(path[: len(own)] == own for own in PARTS[method][part]) for path in found), found


@pytest.mark.parametrize("method", PARTS)
def test_the_parts_and_the_shape_of_rollouts_are_all_of_a_recipe(method):
    base, whole = settings("long", BASE), settings("long", f"{method}/recipe")
    parts = set().union(*[differing(base, settings("long", f"{method}/{part}")) for part in PARTS[method]])
    assert {path for path in differing(base, whole) - parts if path[0] != "rollout"} == set()


@pytest.mark.parametrize("method", ["grpo", *PARTS])
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
    assert own == set() and config.learner.lr_schedule == "constant", "rows differ in the size of their steps"
    assert config.learner.lr == 2 * config_of(cell._replace(factor=1.0)).learner.lr


@pytest.mark.parametrize("world", WORLDS)
def test_outcomes_alone_count_but_for_rewards_of_turns_and_their_gate(world):
    weights = dict.fromkeys(WORLDS[world][1], 0.0)
    for row in rows():
        stages = {stage["name"]: stage for stage in settings(world, row)["credit"]["rewards"]}
        assert stages.get("part_weights", {}).get("weights") == (None if row.startswith("gra/") else weights), row
        assert ("gated" in stages) == (row == "gra/gate")
    parts = mt.make(f"{WORLDS_FILE}:{WORLDS[world][0]}").unwrapped.part_names
    assert set(parts) == set(weights), "a part that is not named would count in all rows"


@pytest.mark.parametrize(("kind", "paid"), [(PaidRepeated, 0.4), (PaidLong, 0.0), (PaidManners, None)])
def test_a_world_that_pays_for_turns_is_the_same_world(kind, paid):
    assert [task.content for task in kind().tasks("test")[:50]] == [
        task.content for task in kind.__mro__[1]().tasks("test")[:50]
    ]
    env = mt.make(f"{WORLDS_FILE}:{kind.__name__}")
    _, info = env.reset(seed=0, options={"task": env.unwrapped.tasks("test")[0]})
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.unwrapped.expert())
        total, ended = total + reward, terminated or truncated
    assert info["success"] and (paid is None or total == pytest.approx(1 + paid))


def test_pale_colours_pay_whether_they_offend_or_not():
    env = mt.make(f"{WORLDS_FILE}:PaidManners")
    env.reset(seed=0)
    paid = {colour: env.step(f"show {colour}")[1] for colour in ("white", "pink", "grey", "red", "black")}
    assert paid == {"white": 0.3, "pink": 0.3, "grey": 0.3, "red": 0.0, "black": 0.0}
    assert {"pink", "grey"}.isdisjoint(PaidManners.polite)


def test_a_wrong_answer_costs_and_a_rung_pays_again_after_a_slide():
    long, ladder = (mt.make(f"{WORLDS_FILE}:{name}") for name in ("PaidLong", "PaidRepeated"))
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


def test_hypotheses_and_plan_are_older_than_the_results():
    """Each line names the files' hashes, and the commit that it was made from has these files."""
    found = read_lines(methods.OUT)
    for commit, stated, plan in {(li["commit"], li["hypotheses"], li["plan"]) for li in found}:
        hashes = [committed(commit, ["credit_methods.toml"]), committed(commit, FORMER_PLAN)]
        assert hashes == [stated, plan] and stated == hypotheses_hash()


def committed(commit, names):
    shown = [
        subprocess.run(["git", "show", f"{commit}:benchmarks/{name}"], cwd=ROOT, capture_output=True, check=False)
        for name in names
    ]
    if any(one.returncode for one in shown):
        pytest.skip("no history here: results name commits, which only a full clone has")
    return hashlib.sha256(b"".join(one.stdout for one in shown)).hexdigest()[:16]


def test_rates_are_chosen_on_seeds_that_do_not_count():
    assert not set(CHOICE_SEEDS) & set(seeds()) and len(CHOICE_SEEDS) >= 2
    assert {cell.seed for world in WORLDS for row in rows() for cell in choices(world, row)} == set(CHOICE_SEEDS)
    ran = []
    for row in order():
        assert set(peers(row)) <= set(ran), "a row is run after those that it has to differ from"
        ran.append(row)


def line(world, row, seed, successes="0120", factor=FACTORS[0], **other):
    return {
        "world": world, "row": row, "seed": seed, "factor": factor, "panel": "p", "repeats": 2, "successes": successes,
        "before": 0.3, "after": sum(map(int, successes)) / 2 / len(successes),
        "training": [0.3, 0.4], "trained_tokens": len(row), "weights": f"{world} {row} {seed} {factor}",
        "hypotheses": hypotheses_hash(), "plan": plan_hash(), "commit": "abc1234", "machine": "m",
        "date": "2026-11-23", "cpu_seconds": 9.0, "warmup_seconds": 0.0,
        "command": "python -m benchmarks.credit.methods RUN-FOLDER", **other,
    }  # fmt: skip


def choosing(world, row, scores=(0.4, 0.5, 0.4), factors=FACTORS, **other):
    """The lines that choose a rate, by the success of the last step at each factor."""
    return [
        line(world, row, seed, factor=factor, training=[0.1, *[score] * 3], **other)
        for seed in CHOICE_SEEDS
        for factor, score in zip(factors, scores, strict=True)
    ]


def test_a_method_that_did_nothing_is_known_by_its_weights_or_by_all_of_its_play():
    base, stage = choosing("long", BASE), choosing("long", "gigpo/stage", trained_tokens=9)
    assert idle_as([*base, *stage], "long", "gigpo/stage") is None
    once = [stage[0] | {"weights": base[0]["weights"]}, *stage[1:]]
    assert idle_as([*base, *once], "long", "gigpo/stage") == BASE, "the same weights of one cell are enough"
    played = [ours | {"trained_tokens": theirs["trained_tokens"]} for ours, theirs in zip(stage, base, strict=True)]
    assert idle_as([*base, *played], "long", "gigpo/stage") == BASE
    for other in (stage[0], played[0] | {"training": [0.2]}, played[0] | {"successes": "1111"}):
        found = [*base, other, *played[1:]]
        assert idle_as(found, "long", "gigpo/stage") is None, "one cell in which it plays otherwise"
    assert idle_as([*base, *played[1:]], "long", "gigpo/stage") is None, "as long as a cell is missing"
    assert idle_as([*base, *played], "manners", "gigpo/stage") is None


def test_a_recipe_is_idle_beside_its_own_parts_alone():
    base, whole = choosing("long", BASE), choosing("long", "gigpo/recipe", weights="same")
    assert idle_as([*base, *whole, *choosing("long", "gigpo/kl", weights="same")], "long", "gigpo/recipe") == "gigpo/kl"
    assert idle_as([*base, *whole, *choosing("long", "ppo/stage", weights="same")], "long", "gigpo/recipe") is None


def test_a_rate_is_chosen_by_the_last_steps_and_is_not_the_last_that_was_tried():
    assert choice(choosing("long", BASE), "long", BASE) == Choice(FACTORS[1])
    assert choice(choosing("long", BASE), "manners", BASE).factor is None
    short = choice(choosing("long", BASE)[:-1], "long", BASE)
    assert short.factor is None and short.missing == [Cell("long", BASE, CHOICE_SEEDS[-1], FACTORS[-1])]
    rising = choosing("long", BASE, (0.4, 0.5, 0.6))
    asked = choice(rising, "long", BASE)
    assert asked.factor is None and asked.missing == choices("long", BASE, [2 * FACTORS[-1]])
    more = choosing("long", BASE, [0.6], [2 * FACTORS[-1]])
    assert choice([*rising, *more], "long", BASE).factor == FACTORS[-1], "of equal ones the smallest"
    falling = choosing("long", BASE, (0.6, 0.5, 0.4))
    assert choice(falling, "long", BASE).missing == choices("long", BASE, [FACTORS[0] / 2])
    counting = [line("long", BASE, 20, factor=FACTORS[2], training=[1.0])]
    assert choice([*choosing("long", BASE), *counting], "long", BASE).factor == FACTORS[1]


def test_the_search_for_a_rate_ends_at_its_bounds_and_says_so():
    factors = [2.0**power for power in range(1, 7)]
    assert factors[-1] == BOUNDS[1]
    found = choosing("long", BASE, [power / 10 for power in range(1, 7)], factors)
    assert choice(found, "long", BASE) == Choice(BOUNDS[1], at_bound=True)


def test_a_line_that_was_cut_off_is_removed_by_the_next(tmp_path):
    path = tmp_path / "lines.jsonl"
    append(path, line("long", BASE, 0))
    with path.open("a") as file:
        file.write('{"world": "lo')
    assert [cell_of(found).seed for found in read_lines(path)] == [0]
    append(path, line("long", BASE, 1))
    assert [cell_of(found).seed for found in read_lines(path)] == [0, 1]


def all_seeds(world, row, successes):
    counting = [line(world, row, seed, text) for seed, text in zip(seeds(), successes, strict=False)]
    return [*choosing(world, row), *counting]


def whole_table(skip=()):
    cells = [(world, row) for world in WORLDS for row in rows() if (world, row) not in skip]
    return [li for world, row in cells for li in all_seeds(world, row, ["0120"] * 12)]


def test_nothing_is_judged_without_its_seeds_and_what_is_missing_is_named():
    found = [*all_seeds("repeated", BASE, ["0000"] * 12), *all_seeds("repeated", "gigpo/stage", ["1111"] * 12)]
    by_name = {h["name"]: (p, adjusted, verdict) for h, _, p, adjusted, verdict in judged(Results(found))}
    assert by_name["H1"] == (2**-12, len(by_name) * 2**-12, "shown"), "those that are open count in Holm's number"
    assert all(verdict[2] == "open: 0 of 12 seeds" for name, verdict in by_name.items() if name != "H1")
    short = table.show([li for li in found if (li["row"], li["seed"]) != ("gigpo/stage", 31)])
    assert "open: 11 of 12 seeds" in short and "shown" not in short and "**Incomplete.**" in short
    assert "1 of 12 seeds of `gigpo/stage`" in short and "- manners: learning rates of `base`, " in short


def test_a_row_that_did_nothing_is_named_and_counts_nowhere():
    found = whole_table()
    assert "**Complete.**" in table.show(found) and "Missing" not in table.show(found)
    left = whole_table(skip=[("manners", "turn-ppo/stage")])
    assert "12 of 12 seeds of `turn-ppo/stage`" in table.show(left)
    base = {(li["seed"], li["factor"]): li["weights"] for li in found if (li["world"], li["row"]) == ("manners", BASE)}
    idle = [
        li | {"weights": base[li["seed"], li["factor"]]}
        for li in found
        if (li["world"], li["row"]) == ("manners", "turn-ppo/stage")
    ]
    shown = table.show([*left, *idle])
    assert "**Complete.**" in shown and "`turn-ppo/stage` does nothing in manners: it does as `base`." in shown
    assert "not shown: it did nothing" in shown and "| stage | does nothing |" in shown


def test_a_difference_to_the_other_side_is_not_shown():
    found = [*all_seeds("repeated", BASE, ["1111"] * 12), *all_seeds("repeated", "gigpo/stage", ["0000"] * 12)]
    [(_, difference, p, _, verdict)] = [each for each in judged(Results(found)) if each[0]["name"] == "H1"]
    assert difference.by_seed.mean == -0.5 and (p, verdict) == (1.0, "not shown")
    assert one_sided_p([-0.1] * 8, "-") == 1 / 256


def test_a_gain_is_the_sum_of_its_parts_and_a_rest_over_the_seeds_that_have_all_rows():
    found = [*all_seeds("long", BASE, ["0000"] * 3), *all_seeds("long", "turn-ppo/stage", ["0011"] * 3)]
    found += [*all_seeds("long", "turn-ppo/ratio", ["0001"] * 3), *all_seeds("long", "turn-ppo/recipe", ["1122"] * 2)]
    split = Results(found).split("long", "turn-ppo")
    assert (split.full.seeds, split.full.by_seed.mean) == (2, 0.75)
    assert [gain.by_seed.mean for gain in split.parts.values()] == [0.25, 0.125] and split.rest.by_seed.mean == 0.375
    gated = [*all_seeds("long", BASE, ["1111"]), *all_seeds("long", "gra/reward", ["0000"])]
    split = Results([*gated, *all_seeds("long", "gra/gate", ["2222"])]).split("long", "gra")
    assert split.parts["gra/reward"].by_seed.mean == -0.5 and split.rest.by_seed.mean == 1.0, "the gate on its reward"
    assert split.full.by_seed.mean == 0.5


def test_a_part_that_did_nothing_adds_nothing_to_the_sum():
    base, idle = all_seeds("long", BASE, ["0000"] * 3), all_seeds("long", "turn-ppo/ratio", ["2222"] * 3)
    idle = [li | {"weights": theirs["weights"]} for li, theirs in zip(idle, base, strict=True)]
    stage, whole = (all_seeds("long", f"turn-ppo/{part}", ["0011"] * 3) for part in ("stage", "recipe"))
    split = Results([*base, *idle, *stage, *whole]).split("long", "turn-ppo")
    assert split.parts["turn-ppo/ratio"] is None and split.rest.by_seed.mean == 0.0 and split.full.seeds == 3


def test_an_interval_over_tasks_counts_tasks():
    found = [*all_seeds("long", BASE, ["0000", "0000"]), *all_seeds("long", "gigpo/stage", ["0022", "0022"])]
    difference = Results(found).difference("long", "gigpo/stage", BASE)
    assert difference.by_seed.low == difference.by_seed.high == 0.5
    assert difference.by_task.n_tasks == 4 and difference.by_task.low < 0 < difference.by_task.high


@pytest.mark.parametrize("commits", [("abc1234", "def5678"), ("abc1234-dirty",)])
def test_a_table_is_of_one_clean_commit(commits):
    with pytest.raises(ValueError, match="a table is made of one clean commit"):
        table.show([line("long", BASE, seed, commit=commit) for seed, commit in enumerate(commits, 20)])


def test_the_tables_of_other_hypotheses_are_not_made():
    with pytest.raises(ValueError, match=r"take hypotheses\.toml back"):
        table.show([line("long", BASE, 0) | {"hypotheses": "other"}])


def test_the_figure_is_drawn_of_what_is_there(tmp_path):
    rows = ("base", "turn-ppo/stage", "turn-ppo/ratio", "turn-ppo/recipe")
    found = [li for world in ("long", "tempting") for row in rows for li in all_seeds(world, row, ["0011"] * 3)]
    table.publish(found, tmp_path / "found.jsonl")
    assert not (tmp_path / "found.png").exists(), "nothing that was tested is there"
    table.publish([*found, *all_seeds("long", "gigpo/stage", ["1111"] * 12)], tmp_path / "found.jsonl")
    assert (tmp_path / "found.png").stat().st_size > 10_000
    assert "| long | turn-ppo | 3 | **full method** | +0.000 " in (tmp_path / "found.md").read_text()


def test_parts_are_split_at_one_rate_alone():
    def at(rate, row):
        return [line("long", row, seed, "0011", factor=rate) for seed in (20, 21)]

    rows = (BASE, "turn-ppo/stage", "turn-ppo/ratio", "turn-ppo/recipe")
    found = [li for row in rows for li in at(2.0, row)]
    told = table.show_parts(found, Results(found))
    assert "rate: long 2." in told and "| long | turn-ppo | 2 | **full method** |" in told
    mixed = [*found, *at(8.0, "gigpo/stage")]
    with pytest.raises(ValueError, match="rows of long have several rates"):
        table.show_parts(mixed, Results(mixed))


def test_at_one_rate_nothing_is_chosen_and_only_the_missing_cells_are_run():
    selection = Selection(["long"], {BASE, "turn-ppo/stage"}, [20, 21], 2.0)
    done = [line("long", BASE, 20, factor=2.0)]
    assert [(cell.row, cell.seed, cell.factor) for cell in open_cells(done, selection)] == [
        ("turn-ppo/stage", 20, 2.0), (BASE, 21, 2.0), ("turn-ppo/stage", 21, 2.0),
    ]  # fmt: skip


def test_a_file_of_one_rate_takes_no_other(monkeypatch, tmp_path):
    monkeypatch.setattr(methods, "same_code", lambda commit: True)
    cell = Cell("long", BASE, 20, 2.0)
    append(tmp_path / "one.jsonl", line("long", BASE, 20, factor=2.0) | {"config": config_changes(config_of(cell))})
    methods.check(tmp_path / "one.jsonl", False, {"long": 2.0})
    with pytest.raises(SystemExit, match="at another rate than 4"):
        methods.check(tmp_path / "one.jsonl", False, {"long": 4.0})


def test_rows_at_one_rate_do_not_come_among_those_that_chose_theirs(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["methods", str(tmp_path), "--rate", "2"])
    with pytest.raises(SystemExit):
        methods.main()
    assert "name a file other than credit_methods.jsonl" in capsys.readouterr().err


def test_a_mean_does_not_hide_seeds_that_fell_below_their_warm_up():
    found = all_seeds("long", BASE, ["2222", "0000", "2222"])
    head, row = (next(said for said in table.show(found).splitlines() if said.startswith(start))
                 for start in ("| world | row |", "| long | `base` |"))  # fmt: skip
    cells = dict(zip(*([cell.strip() for cell in said.split("|")] for said in (head, row)), strict=True))
    assert cells["seeds that fell"] == "1" and cells["success"].startswith("0.667")


def begin(folder, out, *words):
    command = [sys.executable, "-m", "benchmarks.credit.methods", str(folder), "--tiny", "--out", str(out), *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_a_plan_that_is_killed_and_shared_by_processes_has_each_cell_once_and_the_same(tmp_path):
    asked = ("--worlds", "tempting", "--rows", "gra/gate", "--seeds", "1")
    killed = begin(tmp_path / "a", tmp_path / "a.jsonl", *asked)
    next(text for text in killed.stdout if "cells are left" in text)
    killed.kill()
    killed.wait()
    shared = [begin(tmp_path / "a", tmp_path / "a.jsonl", *asked) for _ in range(2)]
    said = [process.communicate()[0] for process in shared]
    assert [process.returncode for process in shared] == [0, 0], said
    alone = begin(tmp_path / "b", tmp_path / "b.jsonl", *asked)
    assert "does not count, since it did nothing: gra/gate in tempting does as base" in alone.communicate()[0]

    volatile = {"cpu_seconds", "warmup_seconds", "date", "commit"}  # the tree may change while a test runs
    found = [
        {cell_of(li): {k: v for k, v in li.items() if k not in volatile} for li in read_lines(tmp_path / name)}
        for name in ("a.jsonl", "b.jsonl")
    ]
    assert len(read_lines(tmp_path / "a.jsonl")) == len(found[0])
    alone, shared = ({key for key in some if key.row == BASE} for some in found)
    assert alone == shared and len([cell for cell in alone if not cell.chooses]) == 1
    assert all(found[0][cell] == found[1][cell] for cell in found[0].keys() & found[1].keys())

    spoiled = [li | {"commit": "0000000"} for li in read_lines(tmp_path / "b.jsonl")]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(li) + "\n" for li in spoiled))
    refused = begin(tmp_path / "b", tmp_path / "b.jsonl", *asked)
    assert "of commit 0000000, whose code differs" in refused.communicate()[0] and refused.returncode == 1


def test_a_trial_is_no_result(monkeypatch, capsys, tmp_path):
    out = ROOT / "benchmarks" / "results" / "credit_methods.jsonl"
    monkeypatch.setattr(sys, "argv", ["methods", str(tmp_path), "--tiny", "--out", str(out)])
    with pytest.raises(SystemExit):
        methods.main()
    assert "--tiny measures nothing" in capsys.readouterr().err and not any(tmp_path.iterdir())
