"""Golden files of another seed must pass too: few cases, groups of equal scores, some files missing."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import Forking
from needs_files import DATA, GOLDEN, NO_GOLDEN, golden_file

ROOT = Path(__file__).parents[2]
EPS = 1e-6


def compared(value_K: np.ndarray, group_K: list[str], counted_K: np.ndarray, divide: bool) -> np.ndarray:
    """(value - mean) / (std + eps) as the authors compute it, whatever the spread."""
    made_K = np.zeros(len(value_K))
    for group in set(group_K):
        members_K = np.array([name == group for name in group_K])
        counted = value_K[members_K & counted_K]
        mean, std = (counted.mean(), counted.std(ddof=1)) if len(counted) > 1 else (0.0, 1.0)
        made_K[members_K] = (value_K[members_K] - mean) / (std + EPS if divide else 1.0)
    return made_K


def episodes(score_K: list[float], group_K: list[str], trajectory_K: list[str], rows: bool, divide: bool) -> dict:
    """A case of grpo_multirow: rows of two tokens, the score on the first."""
    first_K = np.array([name not in trajectory_K[:k] for k, name in enumerate(trajectory_K)])
    made_K = compared(np.array(score_K), group_K, first_K | rows, divide)
    inputs = {"group_index": group_K, "traj_index": trajectory_K, "response_mask": [[1, 1]] * len(score_K)}
    return {
        "name": f"rows_{rows}_std_{divide}",
        "inputs": inputs | {"token_level_rewards": [[score, 0.0] for score in score_K]},
        "params": {"epsilon": EPS, "norm_by_std": divide, "stats_over_rows": rows},
        "expected": {"advantages": made_K[:, None].repeat(2, axis=1).tolist()},
    }


def flat_multirow() -> list[dict[str, Any]]:
    """Group "a" scores alike but for a penalty in a later row, "b" alike throughout, "c" differs."""
    score_K = [0.9, 0.8, 0.9, 0.9, 9.9, 9.9, 9.9, 1.0, 0.0, 0.5]
    group_K, trajectory_K = list("aaaabbbccc"), ["a1", "a1", "a2", "a2", "b1", "b1", "b2", "c1", "c2", "c3"]
    return [episodes(score_K, group_K, trajectory_K, rows, std) for rows in (True, False) for std in (True, False)]


def flat_first_returns() -> dict[str, Any]:
    """A case of igpo: the members of "a" begin with one return and go on differently; those of "b" do not."""
    reward_BL = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.25]])
    groups = list("aabb")
    B, L = reward_BL.shape
    begin_N = np.tile(np.arange(L) == 0, B)
    expected = {}

    def to_go(gamma: float) -> np.ndarray:
        return np.array([[sum(gamma**j * r for j, r in enumerate(row[k:])) for k in range(L)] for row in reward_BL])

    for gamma in (0.25, 1.0):
        for name, divide in (("std", True), ("nostd", False)):
            return_BL = to_go(gamma)
            made = compared(return_BL.ravel(), np.repeat(groups, L).tolist(), begin_N, divide).reshape(B, L)
            expected[f"discounted_g{gamma}_{name}"] = {"returns": return_BL.tolist(), "advantages": made.tolist()}
    places = [f"{group}{place}" for group in groups for place in range(L)]
    made = compared(to_go(1.0).ravel(), places, np.full(B * L, True), False).reshape(B, L)
    expected["default_training_path"] = {"returns": to_go(1.0).tolist(), "advantages": made.tolist()}
    mask = np.ones((B, L), int).tolist()
    inputs = {"group_index": groups, "response_mask": mask, "token_level_rewards": reward_BL.tolist()}
    return {"name": "flat", "inputs": inputs, "params": {"epsilon": EPS}, "expected": expected}


def write(folder: Path, name: str, content: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def ran(forked: Forking, folder: Path, *files: str) -> str:
    """What pytest says of these test files with the golden files of a folder."""
    words = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow")
    variables = {**os.environ, "MANYTURN_GOLDEN": str(folder), "MANYTURN_DATA": str(DATA)}
    variables.pop("PYTEST_XDIST_WORKER", None)
    done = forked("-m", "pytest", *words, *files, cwd=ROOT, env=variables)
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@pytest.mark.deep
def test_groups_of_equal_scores_pass_and_missing_files_are_skipped_for_one_reason(tmp_path, forked):
    multirow = flat_multirow()
    largest = max(np.abs(case["expected"]["advantages"]).max() for case in multirow)
    assert largest > 1e4, "the authors divide by eps alone"
    write(tmp_path / "golden", "grpo_multirow", {"cases": multirow})
    write(tmp_path / "golden", "igpo", {"cases": [flat_first_returns()]})
    said = ran(forked, tmp_path / "golden", "tests/trainers/test_golden.py").splitlines()
    [skips] = [line for line in said if "skipped:" in line]
    assert skips.endswith(NO_GOLDEN) and f"{len(multirow) + 3} passed" in said[-1]


ENVIRONMENTS = {
    "webshop_transcripts": "episodes",
    "webshop_reward_cases": "cases",
    "webshop_lucene_search": "queries",
    "tau_bench_replay": "tasks",
    "tau2_bench_replay": "tasks",
}


@pytest.mark.slow
def test_a_few_cases_of_environments_pass(tmp_path, forked):
    for name, part in ENVIRONMENTS.items():
        whole = golden_file(name)
        write(tmp_path / "golden", name, whole | {part: whole[part][3::9]})
    assert (tmp_path / "golden",) != GOLDEN
    folders = ("shop/test_transcripts.py", "shop/test_reward.py", "shop/test_search.py", "shop/test_prepared.py")
    tau = ("benchmarks/tau/test_replays.py", "benchmarks/tau/test_dialogue.py")
    assert " passed" in ran(forked, tmp_path / "golden", *(f"tests/envs/{file}" for file in folders + tau))
