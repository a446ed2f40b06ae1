"""Memory that runs out while replies are drawn or learnt from: the run goes on in smaller steps, and loses nothing."""

import asyncio
import json

import pytest
import scarce_engine  # noqa: F401  registers an engine
from short_runs import figures, short_run

from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

BRIEF = {"steps": 2, "checkpoint_every": 1, "evaluation": {"limit": 2}}


def found(folder, engine):
    asyncio.run(train(short_run(**BRIEF, engine=engine), folder))
    return figures(folder)


def without_the_engine(told):
    names = ("out_of_memory", "batch_limit")
    return told["summary"], [{k: v for k, v in line.items() if k not in names} for line in told["metrics"]]


@pytest.mark.deep
def test_a_run_that_runs_out_of_memory_is_the_run_with_the_smaller_batch_also_when_it_is_resumed(tmp_path):
    scarce = found(tmp_path / "scarce", {"name": "scarce", "max_batch": 8, "rows": 2})
    small = found(tmp_path / "small", {"name": "transformers", "max_batch": 2})
    assert without_the_engine(scarce) == without_the_engine(small)
    first, second = (line for line in scarce["metrics"] if line["phase"] == "train")
    assert (first["out_of_memory"], first["batch_limit"]) == (1, 2), "the first four replies together, then two"
    assert second["out_of_memory"] == 0
    assert first["errors"] == second["errors"] == 0 and first["retried"] == 0, "no episode was lost or begun again"

    summary = asyncio.run(train(None, tmp_path / "scarce", resume=True, steps=3))
    third = json.loads((tmp_path / "scarce" / "metrics.jsonl").read_text().splitlines()[-1])
    assert summary["steps"] == 3 and (third["out_of_memory"], third["batch_limit"]) == (0, 2)


@pytest.mark.deep
def test_a_run_whose_passes_are_too_large_is_the_run_with_smaller_ones_also_when_it_is_resumed(tmp_path):
    engine = {"name": "scarce", "max_batch": 4, "rows": 4, "learnt_tokens": 400}
    scarce = found(tmp_path / "scarce", engine)
    first, second = (line for line in scarce["metrics"] if line["phase"] == "train")
    assert first["micro_tokens"] == second["micro_tokens"] <= 400
    assert first["errors"] == second["errors"] == 0 and first["retried"] == 0

    config = short_run(**BRIEF, engine={**engine, "learnt_tokens": 10**9})
    config = config.model_copy(
        update={"learner": config.learner.model_copy(update={"micro_tokens": int(first["micro_tokens"])})}
    )
    asyncio.run(train(config, tmp_path / "small"))
    assert figures(tmp_path / "small")["summary"]["weights"] == scarce["summary"]["weights"]

    told = read_metrics(tmp_path / "scarce")
    asyncio.run(train(None, tmp_path / "scarce", resume=True, steps=3))
    third = read_metrics(tmp_path / "scarce")[-1]
    assert third["micro_tokens"] == told[-1]["micro_tokens"] and third["learner_out_of_memory"] == 0
