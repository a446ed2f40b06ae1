"""Benchmarks of the learner that no longer run, or whose rows learn from other tokens or by another loss."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs_host import host

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(1000)  # many processes, on a machine that may be busy
SECONDS = ["benchmarks.speed.learner", "--repeats", "1", "--only", "10 turns"]
CONTEXTS = ("whole", "history", "window")


def rows(folder: Path, *words: str) -> list[dict[str, Any]]:
    """The rows that a benchmark writes at toy size."""
    out = folder / "learner.json"
    subprocess.run([sys.executable, "-m", *words, "--toy", "--out", str(out)], cwd=ROOT, check=True, timeout=900)
    return json.loads(out.read_text())["rows"]


@pytest.mark.slow
def test_every_way_of_packing_learns_from_the_same_tokens(tmp_path):
    best = {row["name"].removeprefix("10 turns | "): row["best"] for row in rows(tmp_path, *SECONDS)}
    assert len(best) >= 9 and best["history | padding"]["times_history"] == 1
    for context in CONTEXTS:
        padded, packed, shared = (best[f"{context} | {packing}"] for packing in ("padding", "packed", "trie"))
        assert padded["asked"] == packed["asked"] == packed["computed"] == shared["asked"]
        assert padded["computed"] >= packed["computed"] >= shared["computed"]
    assert best["history | trie"]["computed"] == best["whole | trie"]["computed"]


def test_trl_is_measured_on_the_gradient_of_our_learner(tmp_path):
    host("trl")
    best = {row["name"].removeprefix("10 turns | "): row["best"] for row in rows(tmp_path, *SECONDS)}
    for context in CONTEXTS:
        ours, peers = best[f"{context} | padding"], best[f"{context} | trl"]
        assert peers["grad_norm"] == pytest.approx(ours["grad_norm"], rel=1e-3)
        assert peers["asked"] == ours["asked"] <= peers["computed"]


@pytest.mark.slow
def test_every_setting_has_its_memory(tmp_path):
    settings = {row["setting"]: row for row in rows(tmp_path, "benchmarks.speed.learner.memory")}
    assert len(settings) == 7 and all(row["measured_mb"] > 0 for row in settings.values())
    assert settings["recomputed"]["passing_mb"] < 2 * settings["all weights"]["passing_mb"], "of twice as many tokens"
    assert settings["adapters"]["kept_mb"] < settings["all weights"]["kept_mb"]
    assert settings["all weights"]["kept_mb"] < settings["a critic of its own"]["kept_mb"]
    assert settings["adapters on the upper half"]["passing_mb"] < settings["adapters"]["passing_mb"]
