"""Spread over training seeds: confidence that a handful of runs cannot give."""

import io
import json
import math
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import trim_mean

from manyturn.agents.evaluation.paired_comparison import CompareError
from manyturn.agents.evaluation.seed_intervals import spread
from manyturn.agents.evaluation.summary import ABOUT, summarise
from manyturn.agents.records.episode_rows import EPISODES, write_table
from manyturn.api.comparison import compare_seeds
from manyturn.envs.contract.tasks.panel import Panel
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import RunFolder


def drawn(rng, runs, tasks, sway=0.0, repeats=4):
    """Outcomes of runs whose success differs by ``sway`` around one half."""
    chances = np.clip(0.5 + sway * rng.standard_normal((runs, 1)) + 0.2 * rng.standard_normal((1, tasks)), 0, 1)
    wins = rng.random((repeats, runs, tasks)) < chances
    return [{f"task {n}": wins[:, r, n].astype(float).tolist() for n in range(tasks)} for r in range(runs)]


def test_fewer_than_three_runs_get_no_interval():
    runs = drawn(np.random.default_rng(0), 3, 20)
    for few in (1, 2):
        found = spread(runs[:few])
        assert math.isnan(found.low) and math.isnan(found.high) and found.lowest <= found.iqm <= found.highest
    assert math.isfinite(spread(runs).low)


def test_the_interquartile_mean_is_that_of_the_runs():
    runs = drawn(np.random.default_rng(1), 8, 20, 0.2)
    means = sorted(np.mean([values for values in run.values()]) for run in runs)
    found = spread(runs)
    assert found.iqm == pytest.approx(np.mean(means[2:6])) == pytest.approx(trim_mean(means, 0.25))
    assert (found.lowest, found.highest) == pytest.approx((means[0], means[-1]))
    assert (found.n_runs, found.n_tasks, found.n_episodes) == (8, 20, 8 * 20 * 4)


def test_neither_the_order_of_runs_nor_of_tasks_matters_and_nothing_is_left_to_chance():
    runs = drawn(np.random.default_rng(2), 5, 12, 0.2)
    turned = [dict(reversed(run.items())) for run in reversed(runs)]
    assert spread(runs) == spread(runs) == spread(turned)


def test_runs_that_lie_apart_widen_the_interval_and_more_repeats_of_them_do_not_narrow_it():
    rng = np.random.default_rng(3)
    close, apart = spread(drawn(rng, 4, 100)), spread(drawn(rng, 4, 100, 0.3))
    assert apart.high - apart.low > 2 * (close.high - close.low)
    # All four agree on every task of an outcome, yet differ from one another: tasks are no independent witnesses.
    split = [{f"task {n}": [float(r % 2)] for n in range(500)} for r in range(4)]
    assert spread(split).high - spread(split).low > 0.9


def test_runs_that_all_succeed_do_not_prove_perfection():
    found = spread([{str(n): [1.0] for n in range(20)}] * 3)
    assert (found.iqm, found.high) == (1, 1) and 0.8 < found.low < 0.9


def test_one_bad_run_among_perfect_ones_still_counts_in_the_interval():
    runs = [{str(n): [1.0] for n in range(50)} for _ in range(4)] + [{str(n): [0.0] for n in range(50)}]
    found = spread(runs)
    assert found.iqm == 1 and found.low < 0.7


def test_kinds_of_tasks_that_the_panel_fixes_are_no_chance():
    runs = [{f"{kind}{n}": [float(kind == "easy")] * 2 for kind in ("easy", "hard") for n in range(20)}] * 3
    runs = [dict(run, easy0=[0.0, 1.0], hard0=[0.0, float(r)]) for r, run in enumerate(runs) if r < 2] + [runs[2]]
    plain, by_kind = spread(runs), spread(runs, {task: task[:4] for task in runs[0]})
    assert by_kind.high - by_kind.low < 0.7 * (plain.high - plain.low)
    each_alone = spread(runs, {task: task for task in runs[0]})
    assert each_alone == plain


def test_runs_on_other_tasks_and_values_that_are_no_success_are_refused():
    with pytest.raises(ValueError, match="different tasks"):
        spread([{"a": [1]}, {"b": [1]}])
    with pytest.raises(ValueError, match="no run"):
        spread([])
    with pytest.raises(ValueError, match="between 0 and 1"):
        spread([{"a": [3]}, {"a": [1]}])


def written(folder, seed, run, lr=1e-3, config=True):
    """A run's folder with an evaluation that has these outcomes."""
    if config:
        with RunFolder(folder, resume=False) as opened:
            opened.write_config(parse_config({"env": {"id": "manyturn/Maze-v0"}, "seed": seed, "learner": {"lr": lr}}))
    out = folder / "evaluation"
    out.mkdir(parents=True)
    panel = Panel("manyturn/Maze-v0", "test", tuple(run), tuple(f"content {task}" for task in run))
    empty: dict[str, Any] = {"text": "", "texts": [], "figures": {}}
    blank = {name: empty.get(kind, 0) for name, kind in EPISODES.kinds.items()}
    blank |= {"split": "test", "difficulty": None, "stage": "e"}
    blank |= {"cause": "", "last": "", "attempts": 1, "turns": 1, "return": 0.0, "ending": "completed"}
    rows = [
        {**blank, "task": task, "content": f"content {task}", "member": i, "success": None if v is None else bool(v)}
        | ({"ending": "env_error"} if v is None else {})
        for task, values in run.items()
        for i, v in enumerate(values)
    ]
    about = dict.fromkeys(ABOUT) | {"policy": "mine", "repeats": 1, "args": {}}
    about["panel"] = {"id": panel.id, "hash": panel.hash, "n_tasks": len(panel)}
    panel.save(out / "panel.json")
    write_table(out / "episodes.parquet", rows, EPISODES)
    (out / "summary.json").write_text(json.dumps(summarise(rows, about)))
    return folder


def said(*args, **kwargs):
    text = io.StringIO()
    return compare_seeds(*args, **kwargs, console=Console(file=text, width=160)), text.getvalue()


def test_the_table_says_seeds_and_an_interval_from_three_runs_on(tmp_path):
    runs = drawn(np.random.default_rng(4), 3, 10, 0.1)
    paths = [written(tmp_path / f"run-{seed}", seed, run) for seed, run in enumerate(runs)]
    found, text = said(paths, tmp_path / "seeds.json")
    assert [run["seed"] for run in found["runs"]] == [0, 1, 2] and len(found["notes"]) == 1
    assert "identity unknown" in found["notes"][0], "these folders are of no environment"
    assert found["spread"]["low"] < found["spread"]["iqm"] < found["spread"]["high"]
    assert json.loads((tmp_path / "seeds.json").read_text()) == found
    assert "interquartile mean" in text and "lowest, highest" in text
    two, text = said([paths[0], paths[1] / "evaluation"])
    assert two["spread"]["low"] is None and "no interval below 3 seeds" in text
    assert [run["seed"] for run in two["runs"]] == [0, 1]


def test_one_run_twice_is_refused_and_other_differences_are_said(tmp_path):
    runs = drawn(np.random.default_rng(5), 3, 6)
    first = written(tmp_path / "a", 0, runs[0])
    with pytest.raises(CompareError, match="each once"):
        said([first, tmp_path / "." / "a"])
    with pytest.raises(CompareError, match="training seed 0 and one configuration"):
        said([first, written(tmp_path / "b", 0, runs[1])])
    _, text = said([first, written(tmp_path / "c", 1, runs[1], lr=1e-4)])
    assert "differ in more than their seed: learner.lr" in text
    _, text = said([first, written(tmp_path / "d", 1, runs[1], config=False)])
    assert "unknown" in text and "nothing says that it was trained apart" in text


def test_a_task_on_which_a_run_has_only_errors_is_left_out_for_all(tmp_path):
    runs = drawn(np.random.default_rng(6), 3, 6)
    runs[1]["task 2"] = [None, None]
    found, text = said([written(tmp_path / str(seed), seed, run) for seed, run in enumerate(runs)])
    assert found["spread"]["n_tasks"] == 5 and "1 tasks left out" in text
