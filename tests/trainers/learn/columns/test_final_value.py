"""Truncated episodes that go on with the value of a state that they have left, not of that in which they were cut."""

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from played_guesses import guess_model, played
from short_runs import figures, short_run

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.heads.head_config import ValueHeadConfig
from manyturn.trainers.learn.learner.column import COLUMNS, PlayedStep, with_columns
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.play.rollout.rollout_batch import turn_batch
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

ODD = f"{Path(__file__).parents[2].joinpath('odd_replies.py')}:OddReplies"
CONTEXTS = [{}, {"context": {"name": "window", "turns": 1}}]


def opinionated(language) -> Learner:
    """A learner whose critic says something of its own of every state."""
    learner = Learner(language, LearnerConfig(), ClipConfig(), 1.0, [ValueHeadConfig()])
    torch.manual_seed(0)
    with torch.no_grad():
        learner.heads[0].fit.module[0].weight.normal_()
    return learner


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_the_final_value_is_that_of_the_turn_which_the_limit_took_away(context):
    """The same episodes with more turns: before the reply to the final observation the critic says the same."""
    config = AgentConfig(**context)
    language = guess_model(config)
    learner, short, full = opinionated(language), *(played(language, config, max_turns=most) for most in (2, 9))
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(config, language.template, engine, Sampling(max_tokens=12))
    step = PlayedStep(learner.read(samples_of(short)), turn_batch(short), short, agent, learner)
    batch, told, _ = with_columns(step, [COLUMNS.parse("final_value")], {})
    value_E = batch.columns["final_value"][np.cumsum([len(e.turns) for e in short]) - 1]
    longer = [len(episode.turns) > 2 for episode in full]
    assert any(longer) and told["final_value"] == pytest.approx(np.nanmean(value_E))
    for cut, value, episode, goes_on in zip(short, value_E, full, longer, strict=True):
        assert goes_on != np.isnan(value)
        if goes_on:
            assert cut.ledger.unanswered.ids == episode.ledger.prompt(2)
            [*_, row] = learner.read([s for s in samples_of([episode]) if 2 in s.reply]).head_values("value")[:1]
            assert value == pytest.approx(float(row[episode.ledger.spans[2].start]), abs=1e-4)


def test_an_observation_that_the_context_does_not_hold_is_read_as_far_as_it_goes():
    """Rows of the critic are no longer than what the policy can read, where a model can have no more positions."""
    config = AgentConfig(max_context=70)
    language = guess_model(config)
    [*episodes] = (episode for episode in played(language, config) if episode.cause == "context" and episode.turns)
    assert episodes, "or the context holds all"
    learner = opinionated(language)
    asked = []
    learner.read, read = lambda samples: asked.extend(samples) or read(samples), learner.read
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(config, language.template, engine, Sampling(max_tokens=12))
    step = PlayedStep(read(samples_of(episodes)), turn_batch(episodes), episodes, agent, learner)
    batch, *_ = with_columns(step, [COLUMNS.parse("final_value")], {})
    assert np.isfinite(batch.columns["final_value"]).all()
    assert {len(sample) for sample in asked} == {71}, "the last token is that which is not read"


def test_a_run_whose_truncated_episodes_go_on_learns_otherwise_and_resumes_to_the_bit(tmp_path):
    recipe, killed = load_recipe("ppo"), tmp_path / "killed"

    def copy_when_half_done(line):
        if line["phase"] == "train" and line["step"] == 3:
            shutil.copytree(tmp_path / "True", killed, ignore=shutil.ignore_patterns(".*.writing"))

    for bootstrap in (True, False):
        config = short_run(
            env={"id": ODD},
            rollout={"tasks": 3, "group": 3, "horizon": {"first": 1, "by": 1, "every": 1, "last": 2}},
            credit={
                "advantage": {**recipe["credit"]["advantage"], "bootstrap": bootstrap},
                "rewards": [{"name": "overlong", "over": "reply", "buffer_share": 1.0}],
            },
            value={"lr": 0.05},
            steps=4,
            evaluation={"limit": 1},
        )
        asyncio.run(train(config, tmp_path / str(bootstrap), report=copy_when_half_done if bootstrap else print))
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(tmp_path / "True")
    with_it, without = figures(tmp_path / "True"), figures(tmp_path / "False")
    assert with_it["summary"]["weights"] != without["summary"]["weights"]
    values = [line["final_value"] for line in read_metrics(tmp_path / "True") if line["phase"] == "train"]
    assert values[0] == 0 and values[-1] != 0, "a critic that knows nothing says nothing"
