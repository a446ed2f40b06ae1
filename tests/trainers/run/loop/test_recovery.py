"""Demonstrations that recover from invalid replies: one that teaches to say something invalid, or shows none."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import learner
from short_runs import short_run

from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.warmup.demonstrations import Demonstrations, demonstrations

DOORS = f"{Path(__file__).parents[2] / 'wide_doors.py'}:WideDoors"
TAUGHT = {"episodes": 8, "noise": 0.0, "must_succeed": False, "max_updates": 1, "check_every": 1, "check_episodes": 1}
SPACIOUS: dict[str, Any] = {"sampling": {"max_tokens": 64}, "agent": {"format": "tagged"}}


def config_of(**warmup: Any) -> Any:
    return short_run(env={"id": DOORS}, warmup={**TAUGHT, **warmup}, steps=0, evaluation={"limit": 1}, **SPACIOUS)


async def _shown(**warmup: Any) -> tuple[Demonstrations, list[tuple[list[str], list[str]]]]:
    """What is imitated, and of each sequence the replies that are learnt and those that are only read."""
    async with open_run(config_of(**warmup)) as run:
        shown, decode = await demonstrations(run, lambda told: None), run.only.agent.template.decode
        return shown, [parted(sample, decode) for [samples] in [shown.samples] for sample in samples]


def parted(sample: Sample, decode: Any) -> tuple[list[str], list[str]]:
    found: tuple[list[str], list[str]] = ([], [])
    for turn in range(sample.turns):
        said = sample.reply_mask[sample.reply == turn]
        assert said.all() or not said.any(), "a reply is learnt or read, never half of it"
        found[int(not said.all())].append(decode(sample.ids[sample.reply == turn].tolist()))
    return found


def test_what_is_invalid_on_purpose_is_read_and_what_follows_is_learnt():
    plain, whole = asyncio.run(_shown())
    shown, replies = asyncio.run(_shown(invalid=0.4))
    assert plain.invalid == 0 and not any(wrong for _, wrong in whole), "off unless it is asked for"
    wrong = [text for _, texts in replies for text in texts]
    assert wrong and 0.2 < shown.invalid < 0.6
    commands = {text for right, _ in whole for text in right}
    assert {text for right, _ in replies for text in right} <= commands, "only what the expert says is learnt"
    assert not commands & set(wrong)
    assert any(text.startswith("<action>") for text in wrong) and any("<action>" not in text for text in wrong)
    assert shown.reply in commands and shown.longest <= plain.longest


def test_a_reply_that_is_only_read_weighs_nothing_also_where_observations_are_learnt():
    ids, reply = np.arange(10, 22), np.array([-1, -1, -1, 0, 0, -1, -1, 1, 1, 1, -1, -1])
    sample = Sample(0, ids, reply == 1, np.zeros(12), reply, 2)
    made = learner(double=True)
    read = Sample(0, ids, np.arange(12) > 0, np.zeros(12), np.where(np.arange(12) > 0, 0, -1), 1)
    [logprob] = made.read([read]).logprob
    weight = torch.tensor([0, 0.5, 0.5, 0, 0, 0.5, 0.5, 1, 1, 1, 0.5, 0.5], dtype=logprob.dtype)
    expected = -float((logprob * weight).sum() / weight.sum())
    assert made.imitate([sample], 1e-3, observed=0.5)["loss"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.deep
def test_results_say_how_much_of_the_demonstrations_was_invalid(tmp_path):
    asyncio.run(train(config_of(invalid=0.4), tmp_path / "run"))
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    first = read_metrics(tmp_path / "run")[0]
    assert first["phase"] == "demonstrations" and first["invalid"] == summary["warmup"]["invalid"] > 0.2
