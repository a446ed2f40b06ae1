"""Coverage of the intervals and tests of an evaluation, by simulation.

    python -m benchmarks.runs.interval_coverage         under two minutes
    python -m benchmarks.runs.interval_coverage --simulations 1000 --out /tmp/coverage.json

Each simulated evaluation draws the difficulty of its tasks from a Beta distribution and each episode's success from
its task's; the truth is the mean of the distribution. The functions are those that manyturn itself uses.

- intervals: how often the 95 % interval of success holds the truth, beside the interval that takes episodes for
  independent (Wald). Goal 93.5 to 96.5 %. Where the truth is so near 1 that not even successes alone would exclude it,
  only one end can miss it, and an interval that misses 2.5 % at each end holds the truth in 97.5 %.
- pairs: how often a policy is told apart from itself on the same tasks, by the paired interval and by the sign-flip
  test at 5 %. Goal 4 to 6 %. The sign-flip test never exceeds 5 %, and stays below where most tasks are ties.
- attempts: pass@k and pass^k against counting all choices of k among n attempts, and their mean against the truth.
- seeds: how often the interval over training seeds holds the success of all seeds on all tasks, when runs differ
  by chance, beside percentiles of a bootstrap of runs and tasks. No goal is set; it should not fall below 93.5 %.
"""

import argparse
import itertools
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.seed_intervals import spread_ends
from manyturn.agents.evaluation.statistics import flip_p, interval_ends, pass_at_k, pass_hat_k
from manyturn.envs.contract.random_keys import generator

OUT = RESULTS / "coverage.json"
SIMULATIONS = 20_000
DIFFICULTIES = {"Beta(0.6, 0.9)": (0.6, 0.9), "Beta(5, 2)": (5.0, 2.0), "Beta(9, 0.3)": (9.0, 0.3)}
TASKS, REPEATS = (20, 50, 200), (1, 4, 8)
GOAL, PAIR_GOAL = (0.935, 0.965), (0.04, 0.06)
_SLICE = 500


def interval_cell(name: str, tasks: int, repeats: int, simulations: int) -> dict[str, Any]:
    """Share of intervals of success that hold the truth."""
    a, b = DIFFICULTIES[name]
    rng, truth = generator("interval", name, tasks, repeats), a / (a + b)
    means_SN = rng.binomial(repeats, rng.beta(a, b, (simulations, tasks))) / repeats
    low, high = interval_ends(means_SN, proportion=True)
    p = means_SN.mean(1)
    reach = 1.96 * np.sqrt(p * (1 - p) / (tasks * repeats))
    return {
        **_cell(name, tasks, repeats),
        "covered": float(((low <= truth) & (truth <= high)).mean()),
        "too_high": float((low > truth).mean()),
        "too_low": float((high < truth).mean()),
        "width": float((high - low).mean()),
        "episodes_as_independent": float((abs(p - truth) <= reach).mean()),
    }


def pair_cell(name: str, tasks: int, repeats: int, simulations: int) -> dict[str, Any]:
    """Share of comparisons that tell a policy apart from itself."""
    a, b = DIFFICULTIES[name]
    rng, ids = generator("pair", name, tasks, repeats), [f"task {number}" for number in range(tasks)]
    by_interval = by_flips = done = 0
    while done < simulations:
        size = min(_SLICE, simulations - done)
        chances_SN = rng.beta(a, b, (size, tasks))
        differences_SN = (rng.binomial(repeats, chances_SN) - rng.binomial(repeats, chances_SN)) / repeats
        low, high = interval_ends(differences_SN)
        by_interval += int(((low > 0) | (high < 0)).sum())
        by_flips += int((flip_p(differences_SN, ids) <= 0.05).sum())
        done += size
    return {
        **_cell(name, tasks, repeats),
        "interval_rejects": by_interval / simulations,
        "flip_rejects": by_flips / simulations,
    }


def attempts() -> dict[str, Any]:
    """The largest errors of pass@k and pass^k for all numbers of attempts, successes and k up to 8."""
    exact = mean = 0.0
    cases = 0
    for n in range(1, 9):
        for k in range(1, n + 1):
            at, hat = np.zeros(n + 1), np.zeros(n + 1)
            for c in range(n + 1):
                tries = {"task": [True] * c + [False] * (n - c)}
                choices = list(itertools.combinations(tries["task"], k))
                at[c], hat[c] = pass_at_k(tries, k) or 0.0, pass_hat_k(tries, k) or 0.0
                exact = max(exact, abs(at[c] - np.mean([any(choice) for choice in choices])))
                exact = max(exact, abs(hat[c] - np.mean([all(choice) for choice in choices])))
                cases += 1
            for p in (0.01, 0.3, 0.59, 0.98):
                weights = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])
                mean = max(mean, abs(weights @ at - (1 - (1 - p) ** k)), abs(weights @ hat - p**k))
    return {"cases": cases, "largest_error": float(exact), "largest_bias": float(mean)}


def seed_cell(runs: int, tasks: int, sway: float, simulations: int, repeats: int = 4) -> dict[str, Any]:
    """Coverage of the interval over training seeds.

    Chance of run r on task n: expit(0.5 + 1.5 x_n + sway (y_r + 0.5 z_rn)), with standard normal x, y, z.
    """
    rng = generator("seeds", runs, tasks, sway, repeats)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    spread = math.sqrt(1.5**2 + 1.25 * sway**2)
    truth = float(expit(0.5 + spread * nodes) @ weights / weights.sum())
    x, y, z = (rng.standard_normal((simulations, *s)) for s in ((1, tasks), (runs, 1), (runs, tasks)))
    scores_SRN = rng.binomial(repeats, expit(0.5 + 1.5 * x + sway * (y + 0.5 * z))) / repeats
    ids = [f"task {number}" for number in range(tasks)]
    covered = percentiles = width = 0.0
    chosen_DR, chosen_DN = rng.integers(0, runs, (1000, runs)), rng.integers(0, tasks, (1000, tasks))
    counts_ND = np.stack([np.bincount(row, minlength=tasks) for row in chosen_DN], axis=1).astype(float)
    for begin in range(0, simulations, _SLICE):
        slice_SRN = scores_SRN[begin : begin + _SLICE]
        low, high = spread_ends(slice_SRN, ids, [""] * tasks)
        covered += ((low <= truth) & (truth <= high)).sum()
        width += (high - low).sum()
        by_tasks_SRD = (slice_SRN.reshape(-1, tasks) @ counts_ND / tasks).reshape(-1, runs, 1000)
        both_SDR = np.take_along_axis(by_tasks_SRD.transpose(0, 2, 1), chosen_DR[None], 2)
        ends = np.percentile(both_SDR.mean(2), (2.5, 97.5), axis=1)
        percentiles += ((ends[0] <= truth) & (truth <= ends[1])).sum()
    return {
        "runs": runs,
        "tasks": tasks,
        "sway": sway,
        "covered": float(covered / simulations),
        "width": float(width / simulations),
        "percentiles_covered": float(percentiles / simulations),
    }


def _cell(name: str, tasks: int, repeats: int) -> dict[str, Any]:
    a, b = DIFFICULTIES[name]
    return {"difficulty": name, "truth": a / (a + b), "tasks": tasks, "repeats": repeats}


def measure(simulations: int) -> dict[str, Any]:
    """All cells."""
    cells = list(itertools.product(DIFFICULTIES, TASKS, REPEATS))
    swayed = itertools.product((3, 5, 10), (50, 200), (0.1, 0.4, 1.0))
    return {
        "intervals": [interval_cell(*cell, simulations) for cell in cells],
        "pairs": [pair_cell(*cell, simulations // 2) for cell in cells],
        "attempts": attempts(),
        "seeds": [seed_cell(*cell, simulations // 10) for cell in swayed],
    }


def show(result: dict[str, Any]) -> None:
    """Print tables; a mark stands where a figure is outside its goal."""
    print("95 % interval of success: holds the truth (! outside 93.5 to 96.5 %), episodes taken for independent")
    print("1: no interval lay above the truth, only below it")
    for name, rows in itertools.groupby(result["intervals"], lambda row: (row["difficulty"], row["truth"])):
        print(f"  {name[0]}, mean {name[1]:.3f}")
        for row in rows:
            head = f"    {row['tasks']:4d} tasks x {row['repeats']}  {_mark(row['covered'], GOAL)}"
            head += " " if row["too_high"] else "1"
            print(f"{head}   width {row['width']:.3f}   independent {row['episodes_as_independent']:6.1%}")
    print("a policy against itself: told apart (! outside 4 to 6 %) by the paired interval, by sign flips")
    for row in result["pairs"]:
        shares = "   ".join(_mark(row[key], PAIR_GOAL) for key in ("interval_rejects", "flip_rejects"))
        print(f"    {row['difficulty']:15s}{row['tasks']:4d} tasks x {row['repeats']}  {shares}")
    shares = result["attempts"]
    print(f"pass@k, pass^k: {shares['cases']} cases, largest error {shares['largest_error']:.1e}", end="")
    print(f", largest bias {shares['largest_bias']:.1e}")
    print("95 % interval over training seeds: holds the truth (! below 93.5 %), percentiles of the bootstrap")
    for row in result["seeds"]:
        head = f"    {row['runs']:2d} runs x {row['tasks']:3d} tasks, sway {row['sway']}"
        print(f"{head}  {_mark(row['covered'], (GOAL[0], 1.0))}   width {row['width']:.3f}", end="")
        print(f"   percentiles {row['percentiles_covered']:6.1%}")


def _mark(value: float, goal: tuple[float, float]) -> str:
    return f"{value:6.2%}{' ' if goal[0] <= value <= goal[1] else '!'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("manyturn", "numpy", "scipy"))
    began = time.monotonic()
    result = measure(options.simulations)
    record = {
        "simulations": options.simulations,
        "seconds": round(time.monotonic() - began, 1),
        **result,
    }
    show(result)
    print(f"{record['seconds']} s")
    write(options.out, about, record)


if __name__ == "__main__":
    main()
