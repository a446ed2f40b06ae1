"""A teacher who is not the policy with advice in its prompt, advice that the policy sees, or that a kill loses."""

import numpy as np
import pytest
import torch
from played_guesses import guess_model, played, short_guesses
from short_runs import resumed_to_the_bit

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.trainers.learn.columns.teacher import TeacherConfig, teacher
from manyturn.trainers.learn.learner.column import PlayedStep
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.play.rollout.rollout_batch import turn_batch
from manyturn.trainers.record.run_folder import read_metrics

CONTEXTS = {"whole": {}, "window": {"context": {"name": "window", "turns": 1}}, "choices": {"only_admissible": True}}


def logprobs(language, prompt, reply):
    with torch.no_grad():
        logits = language.model(input_ids=torch.tensor([[*prompt, *reply]]), use_cache=False).logits[0]
    scores = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
    return scores[torch.arange(len(reply)), torch.tensor(reply)].numpy()


@pytest.mark.parametrize("advice", ["expert", "answer"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_the_teacher_is_the_policy_with_advice_that_it_has_not_seen(name, advice):
    config = AgentConfig(**CONTEXTS[name])
    language = guess_model(config)
    plain, episodes = played(language, config), played(language, config, advice=advice)
    assert [[turn.reply for turn in one.turns] for one in episodes] == [[t.reply for t in one.turns] for one in plain]
    episodes = [
        episode_from_plain(episode_to_plain(episode), episode.task) for episode in episodes
    ]  # as out of a journal
    learner = Learner(language, LearnerConfig(), ClipConfig(), temperature=1.0)
    reading, batch = learner.read(samples_of(episodes)), turn_batch(episodes)
    step = PlayedStep(reading, batch, episodes, None, learner)  # type: ignore[arg-type]  # which it does not ask
    ratio_T = teacher(step, TeacherConfig(advice=advice)).token_columns["teacher"]
    assert np.isfinite(ratio_T).all() and len(ratio_T) == batch.tokens_K.sum()
    if name == "choices":  # limited tokens are judged among what was possible: forced ones are no evidence
        assert (np.abs(ratio_T) < 20).all() and (ratio_T == 0).any()
        return
    expected = []
    for episode in episodes:
        for turn in range(len(episode.turns)):
            prompt, reply = episode.ledger.prompt(turn), episode.ledger.reply(turn)
            advised = episode.ledger.advised[turn].ids(prompt)
            text = language.template.decode(advised)
            assert ("A good action here:" if advice == "expert" else "The true answer") in text
            expected.append(logprobs(language, advised, reply) - logprobs(language, prompt, reply))
    np.testing.assert_allclose(ratio_T, np.concatenate(expected), atol=2e-4)


def test_a_run_with_a_teacher_goes_on_to_the_bit_after_a_kill(tmp_path):
    config = short_guesses(credit={"advantage": "gigpo", "rewards": ["opsd"], "modulation": ["agentopsd"]})
    lines = [line for line in read_metrics(resumed_to_the_bit(config, tmp_path)) if line["phase"] == "train"]
    assert all(line["teacher_gap"] != 0 for line in lines)
