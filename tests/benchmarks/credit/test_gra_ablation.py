"""A comparison of gated with ungated runs that would mix up seeds, tasks or signs, or begin at different policies."""

import asyncio

import pytest

from benchmarks.credit import gra_ablation
from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.evaluation.paired_comparison import read_evaluation
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats

ENV = "manyturn/GuessNumber-v0"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Seed -> variant -> evaluation: what is gated errs seldom, what is not errs often."""
    root = tmp_path_factory.mktemp("runs")

    async def play(seed, noise, out):
        async with open_seats(ENV, {}) as seats:
            panel = make_panel(seats.tasks("test")[:12], ENV, "test")
            await evaluate(seats, Scripted(noise), EvaluationPlan(panel, repeats=2, seed=seed, max_turns=20), out=out)
        return out

    noises = {"ungated": 0.9, "gated": 0.2}
    return {
        seed: {name: asyncio.run(play(seed, noise, root / f"{name}-{seed}")) for name, noise in noises.items()}
        for seed in (0, 1, 2)
    }


def test_differences_are_gated_minus_ungated_whichever_way_they_are_paired(folders):
    found = gra_ablation.differences(folders)
    means = {
        seed: {name: read_evaluation(out).summary["success"]["mean"] for name, out in pair.items()}
        for seed, pair in folders.items()
    }
    expected = [mean["gated"] - mean["ungated"] for mean in means.values()]
    assert min(expected) > 0
    assert [line["seed"] for line in found["by_seed"]] == [0, 1, 2]
    assert [line["difference"] for line in found["by_seed"]] == pytest.approx(expected)
    for way in ("other_tasks", "other_seeds"):
        assert found[way]["difference"] == pytest.approx(sum(expected) / 3)
        assert found[way]["ci_low"] < found[way]["difference"] < found[way]["ci_high"]


def test_one_seed_has_no_interval_over_seeds(folders):
    found = gra_ablation.differences({1: folders[1]})
    assert found["other_seeds"]["ci_low"] is None and found["other_tasks"]["ci_low"] is not None


def test_variants_that_began_at_different_policies_are_not_compared():
    start = {"seed": 0, "warmup": {"updates": 50}, "before": {"success": 0.25}}
    gra_ablation.check_start([start, start])
    with pytest.raises(SystemExit, match="seed 0: gated and ungated were warmed up differently: remove both"):
        gra_ablation.check_start([start, {**start, "before": {"success": 0.5}}])


def test_a_folder_with_a_run_of_another_configuration_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text('seed = 7\n[env]\nid = "manyturn/Maze-v0"\n')
    with pytest.raises(SystemExit, match="another configuration"):
        gra_ablation.run("booking-tiny", "gated", 0, tmp_path)
