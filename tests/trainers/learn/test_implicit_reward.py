"""Implicit rewards that do not learn from pairs, learn the wrong way round, move the policy, or are lost by a kill."""

import numpy as np
import pytest
import torch
from played_guesses import guess_model, played, short_guesses
from short_runs import resumed_to_the_bit

from manyturn.agents.play.agent import AgentConfig
from manyturn.trainers.learn.heads.head_config import ImplicitConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.record.run_folder import read_metrics

CONTEXTS = {"whole": {}, "window": {"context": {"name": "window", "turns": 1}}, "choices": {"only_admissible": True}}


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_second_policy_learns_which_episodes_did_better_and_the_policy_stays(name):
    config = AgentConfig(**CONTEXTS[name])
    language = guess_model(config)
    episodes = played(language, config)
    learner = Learner(language, LearnerConfig(lr=1e-3), ClipConfig(), 1.0, [ImplicitConfig(beta=1.0, lr=5e-3)])
    learner.begin_reinforcement()
    second = learner.implicit
    assert second is not None
    before = [weights.clone() for weights in language.model.parameters()]
    outcome_E = np.arange(len(episodes)) % 2.0
    targets = HeadTargets(None, outcome_E, np.zeros(len(episodes), int))
    figures = []
    for _ in range(12):
        reading = learner.read(samples_of(episodes))
        rewards = np.concatenate(second.rewards(reading))
        assert len(rewards) == sum(len(episode.turns) for episode in episodes)
        assert bool(rewards.any()) == bool(figures), "both are one policy at first"
        figures.append(second.begin(reading, targets))
    assert figures[-1]["implicit_won"] == 1.0 and figures[-1]["implicit_loss"] < 0.5 * figures[0]["implicit_loss"]
    assert figures[0]["implicit_loss"] == pytest.approx(np.log(2), abs=1e-6)
    assert all(torch.equal(old, new) for old, new in zip(before, language.model.parameters(), strict=True))
    equal = targets._replace(outcome_E=np.ones(len(episodes)))
    assert second.begin(learner.read(samples_of(episodes)), equal) == {"implicit_pairs": 0.0}


def test_a_run_with_implicit_rewards_goes_on_to_the_bit_after_a_kill(tmp_path):
    warmup = {"episodes": 200, "noise": 0.5, "must_succeed": False, "max_updates": 80, "check_every": 80}
    options = {"warmup": {**warmup, "check_episodes": 2}, "rollout": {"tasks": 6, "group": 4}}
    config = short_guesses(credit={"advantage": "istar"}, implicit={"beta": 0.5, "lr": 0.05}, **options)
    lines = [line for line in read_metrics(resumed_to_the_bit(config, tmp_path)) if line["phase"] == "train"]
    assert lines[0]["implicit_std"] == 0 and lines[-1]["implicit_std"] > 0
