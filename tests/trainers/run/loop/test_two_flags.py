"""A run must say apart whose fault a reply was: the policy broke the format, or the environment understood nothing."""

import asyncio
import json

import pytest
from short_runs import short_run

from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.trainers.run.loop.loop import train

TAGGED = {"name": "tagged"}
FREE = {"name": "free_text"}


def played(folder, form, seed=0, agent=None, **penalty):
    """A step's line of metrics, and the rows of its turns and episodes."""
    stage = {"name": "invalid_penalty", "coef": 0.1, **penalty}
    few = {"limit": 1}
    config = short_run(
        seed=seed,
        agent={"format": form, **(agent or {})},
        warmup={"episodes": 0},
        credit={"advantage": "gigpo", "rewards": [stage]},
        steps=1,
        evaluation=few,
    )
    asyncio.run(train(config, folder))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    line = next(line for line in lines if line["phase"] == "train")
    turns, episodes = (next((folder / name).glob("*.parquet")) for name in ("turns", "episodes"))
    told = json.loads((folder / "summary.json").read_text())["notices"]
    return (
        line,
        read_turns(turns),
        read_episodes(episodes),
        any("invalid_penalty charges nothing" in one for one in told),
    )


@pytest.mark.parametrize(
    ("form", "penalty", "charged"),
    [
        (TAGGED, {}, "broken_format"),
        (FREE, {}, "broken_format"),
        (FREE, {"flag": "understood"}, "not_understood"),
    ],
)
def test_a_run_charges_one_flag_and_its_tables_hold_both(tmp_path, form, penalty, charged):
    line, turns, episodes, told = played(tmp_path / "run", form, **penalty)
    broken = sum(not row["format_valid"] for row in turns)
    strange = sum(not row["understood"] for row in turns)
    assert line["broken_format"] == pytest.approx(broken / len(turns))
    assert line["not_understood"] == pytest.approx(strange / len(turns)) and strange
    assert sum(row["broken_formats"] for row in episodes) == broken
    assert sum(row["not_understood"] for row in episodes) == strange
    complete = [row for row in turns if not row["cut"]]
    assert not any(row["format_valid"] for row in turns if row["cut"]), "no part of it acts"
    assert all(row["format_valid"] == ("</action>" in row["reply"]) for row in complete if form is TAGGED)
    assert all(row["format_valid"] == bool(row["reply"].strip()) for row in complete if form is FREE)
    assert line["penalised_turns"] == pytest.approx(line[charged])
    assert not told, "the penalty has charged something"
    # An untrained policy fails everywhere: whatever is charged, the rewards teach nothing.
    assert line["success"] == 0 and line["groups_without_signal"] == 1
    assert (line["penalty_alone"] > 0) == (0 < line[charged] < 1)


def test_a_penalty_that_can_charge_nothing_says_so(tmp_path):
    line, turns, *_ = played(tmp_path / "run", FREE, seed=1, agent={"only_admissible": True})
    assert all(row["format_valid"] for row in turns)
    assert line["penalised_turns"] == line["penalty_alone"] == 0
