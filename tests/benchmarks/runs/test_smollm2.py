"""A result of a language model that says that enough was gained where it was not, or hides what limited replies do."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.runs.smollm2 import judged, recipe_of
from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.recipe.config import parse_config

ROOT = Path(__file__).parents[3]
BENCHMARK = "benchmarks.runs.smollm2"


def ended(before: tuple[float, float], after: tuple[float, float]) -> dict:
    names = ("success", "ci_high"), ("success", "ci_low")
    return {
        "seed": 0,
        "before": dict(zip(names[0], before, strict=True)),
        "after": dict(zip(names[1], after, strict=True)),
    }


@pytest.mark.parametrize(
    ("before", "after", "enough", "apart"),
    [
        ((0.4, 0.47), (0.7, 0.63), True, True),
        ((0.4, 0.47), (0.59, 0.52), False, True),
        ((0.4, 0.6), (0.7, 0.55), True, False),
    ],
)
def test_a_gain_is_enough_and_shown_only_by_both_numbers(before, after, enough, apart):
    [verdict] = judged([ended(before, after)])
    assert (verdict["enough"], verdict["intervals_apart"]) == (enough, apart)


def test_runs_differ_in_their_seed_alone():
    first, second = (parse_config(recipe_of(Path("model"), seed, toy=False)).model_dump() for seed in (0, 1))
    assert (first.pop("seed"), second.pop("seed")) == (0, 1) and first == second


@pytest.mark.slow
def test_it_runs_at_toy_size_and_goes_on_where_it_was(tmp_path):
    async def words() -> list[str]:
        async with open_seats("manyturn/Maze-v0", {"difficulty": "easy"}, limit=1) as seats:
            return await texts_of(seats, AgentConfig(), 8, 0)

    build_tiny(asyncio.run(words()), 0, 1024, torch.device("cpu"), width=16, layers=2, heads=2).save(tmp_path / "model")
    out, folder = tmp_path / "toy.json", tmp_path / "runs"
    words_of = [str(folder), str(tmp_path / "model"), "--seeds", "1", "--toy", "--without-limit", "--out", str(out)]
    command = [sys.executable, "-m", BENCHMARK, *words_of]
    subprocess.run(command, cwd=ROOT, check=True, timeout=240)
    [told] = json.loads(out.read_text())["runs"]
    assert set(told["rows"]) == {"as it came, limited", "as it came", "before", "after"}
    assert told["rows"]["as it came, limited"]["invalid"] == 0 < told["rows"]["as it came"]["invalid"]
    again = subprocess.run(command, cwd=ROOT, check=True, timeout=240, capture_output=True, text=True)
    assert json.loads(out.read_text())["runs"] == [told] and "train" not in again.stdout
