"""Columns: a method that asks the learner is one file, and what nobody supplies or needs is refused before a run."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import plugin_package
import pytest
import tomli_w
import torch
from played_guesses import EIGHT, guess_model, played
from played_guesses import SIZES as SHORT

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.records.episode_rows import read_turns
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, with_columns
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.play.rollout.rollout_batch import turn_batch
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.checkpoint import newest_checkpoint, read_state
from manyturn.trainers.record.metrics import METRICS, define
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

SIZES: dict[str, Any] = {
    **SHORT,
    "env": {"id": EIGHT},
    "sampling": {"max_tokens": 6},
    "learner": {"minibatch": 3, "old_logprobs": "engine"},
    "device": "cpu",
}
# A column over turns and one over tokens, an option, memory, hidden states and a figure; and an advantage out of them.
SURPRISE = '''
from typing import ClassVar, Literal
import numpy as np
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, Supplied
from manyturn.trainers.record.checkpoint import newest_checkpoint, read_state
from manyturn.trainers.record.metrics import METRICS, define

define("surprise", "Surprise: mean of it over reply tokens.")

class SurpriseConfig(ColumnConfig):
    name: Literal["surprise"] = "surprise"
    gives = frozenset({"surprise", "novelty"})
    hidden = "reply_ends"
    scale: float = 1.0
    """Factor."""

@COLUMNS.register(SurpriseConfig, remembers=True)
def surprise(step, config, seen):
    reading = step.reading
    surprise_T = -config.scale * reading.at_replies(reading.logprob)
    states = np.concatenate([row.double().numpy() for row in reading.hidden("reply_ends")])
    turns = (seen or 0) + len(step.batch.turn_K)
    columns = {"novelty": np.square(states - states.mean(0)).sum(1) / turns}
    return Supplied(columns, {"surprise": surprise_T}, {"surprise": float(surprise_T.mean())}), turns

class CuriousConfig(StageConfig):
    name: Literal["curious"] = "curious"
    needs = frozenset({"surprise", "novelty"})

@ADVANTAGES.register(CuriousConfig)
def curious(batch, config):
    surprise_K = np.bincount(batch.turn_of_T, batch.token_column("surprise"), len(batch.turn_K))
    return batch.score_K() + surprise_K + batch.column("novelty")
'''


def with_package(site: Path) -> dict[str, str]:
    """The environment of a program where a package is installed that is not of this repository."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.deep
def test_a_plugin_brings_an_advantage_and_the_columns_that_it_needs(tmp_path, forked):
    site = plugin_package.install(tmp_path / "site", "curiosity", SURPRISE)
    recipe, run = tmp_path / "recipe.toml", tmp_path / "run"
    columns = [{"name": "surprise", "scale": 2.0}]
    recipe.write_text(tomli_w.dumps({**SIZES, "credit": {"advantage": "curious"}, "columns": columns}))
    found = forked("-m", "manyturn", "train", "--recipe", recipe, "--out", run, env=with_package(site))
    assert found.returncode == 0, found.stderr
    lines = [line for line in read_metrics(run) if line["phase"] == "train"]
    steps = [read_turns(file) for file in sorted((run / "turns").glob("*.parquet"))]
    assert len(lines) == len(steps) == 4
    for line, rows in zip(lines, steps, strict=True):
        drawn = np.concatenate([row["logprobs"] for row in rows])
        assert line["surprise"] == pytest.approx(-2 * drawn.mean(), rel=1e-4)
        returns: Counter[tuple[str, int]] = Counter()
        for row in rows:
            returns[row["task"], row["member"]] += row["reward"]
        rest = [r["advantage"] - returns[r["task"], r["member"]] + 2 * sum(r["logprobs"]) for r in rows]
        assert min(rest) > -1e-3 and max(rest) > 1e-3, "what is left is novelty"
    checkpoint, _ = newest_checkpoint(run / "checkpoints")
    assert checkpoint is not None
    [memory] = read_state(checkpoint)["memory"].values()
    assert memory["column surprise"] == sum(map(len, steps)), "what a supplier remembers is part of a checkpoint"


def test_a_stage_of_ours_takes_a_plugin_s_column(tmp_path, forked):
    site = plugin_package.install(tmp_path / "site", "curiosity", SURPRISE)
    code = f"""if True:
        from manyturn.trainers.recipe.config import ConfigError, parse_config
        for stratum in ("novelty", "novelt"):
            advantage = {{"name": "stratified", "stratum": stratum}}
            try:
                print(parse_config({{"env": {{"id": {EIGHT!r}}}, "credit": {{"advantage": advantage}}}}).credit.needs)
            except ConfigError as error:
                print(error)
    """
    (tmp_path / "ask.py").write_text(code)
    taken, refused = forked(tmp_path / "ask.py", env=with_package(site)).stdout.splitlines()
    assert taken == "{'novelty': 'stratified'}"
    told = "stratified needs the unknown column 'novelt'; did you mean 'novelty'? There are action, belief"
    assert refused.startswith(told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"columns": ["drifts"]}, "unknown column 'drifts'; did you mean 'drift'"),
        ({"progress": {}}, r"\[progress\] has no effect: no stage of credit needs what it predicts; leave it out"),
    ],
)
def test_a_column_that_is_missing_or_in_vain_is_refused_before_a_run(changes, told):
    with pytest.raises(ConfigError, match=told):
        parse_config({**SIZES, **changes})


def test_a_second_supplier_of_a_column_is_refused():
    class RivalConfig(ColumnConfig):
        gives: ClassVar[frozenset[str]] = frozenset({"value"})
        name: Literal["test_rival"] = "test_rival"

    COLUMNS.names()  # ours are there first
    known = dict(COLUMNS._entries)
    try:
        COLUMNS.register(RivalConfig)(lambda step, config: None)
        with pytest.raises(ValueError, match="the column value has two suppliers, test_rival and value"):
            parse_config({**SIZES, "credit": {"advantage": "gae"}, "value": {}})
    finally:
        COLUMNS._entries = known


def test_a_forgetful_drift_can_be_asked_for(tmp_path):
    columns = [{"name": "drift", "most_tokens": 1}]
    config = parse_config(
        {**SIZES, "credit": {"advantage": "spo"}, "rollout": {"tasks": 30, "group": 1}, "columns": columns, "steps": 2}
    )
    asyncio.run(train(config, tmp_path / "run"))
    drifts = [line["drift"] for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert drifts == [None, None], "nothing is remembered"


def supplied(name: str, objective: ClipConfig, moved: float) -> np.ndarray:
    """A token column of episodes that were just played, after the weights have moved."""
    language = guess_model(AgentConfig())
    episodes = played(language, AgentConfig())
    learner = Learner(language, LearnerConfig(), objective, 1.0)
    learner.begin_reinforcement()
    with torch.no_grad():
        for weights in language.model.parameters():
            weights.mul_(moved)
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(AgentConfig(), language.template, engine, Sampling(max_tokens=12))
    step = PlayedStep(learner.read(samples_of(episodes)), turn_batch(episodes), episodes, agent, learner)
    return with_columns(step, [COLUMNS.parse(name)], {})[0].token_column(name)


def test_a_token_pays_for_what_the_policy_has_moved_from_the_reference():
    paid = ClipConfig(kl={"coef": 0.5, "place": "reward"})
    assert np.abs(supplied("reward", paid, moved=1.0)).max() < 1e-10
    cost_T = -supplied("reward", paid, moved=1.1)
    assert (cost_T >= -1e-9).all() and cost_T.mean() > 1e-4
    twice_T = -supplied("reward", ClipConfig(kl={"coef": 1.0, "place": "reward"}), moved=1.1)
    np.testing.assert_allclose(twice_T, 2 * cost_T, rtol=1e-6)


def test_a_figure_has_one_meaning():
    define("success", METRICS["success"])
    with pytest.raises(ValueError, match="the metric 'success' is defined already"):
        define("success", "Something else.")
