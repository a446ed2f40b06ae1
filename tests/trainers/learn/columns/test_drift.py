"""How far the policy moved is measured on what was said, against what drew it, and survives a kill."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from played_guesses import guess_model, played, short_guesses
from short_runs import resumed_to_the_bit

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.learn.columns.drift import drifts, visited
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.record.run_folder import read_metrics


@pytest.mark.parametrize(
    "config", [AgentConfig(), AgentConfig(context={"name": "window", "turns": 1})], ids=["whole", "window"]
)
def test_drift_is_0_until_the_weights_move_and_then_what_the_definition_says(config):
    language = guess_model(config)
    episodes = played(language, config)
    learner = Learner(language, LearnerConfig(), ClipConfig(), temperature=1.0)
    visits = json.loads(json.dumps(visited({}, episodes, 10_000)))
    tasks = [episode.task.id for episode in episodes]
    still = drifts(visits, [*tasks, "never played"], learner.read([]))
    assert still.keys() == set(tasks) and max(still.values()) < 1e-4
    with torch.no_grad():
        for parameter in language.model.parameters():
            parameter.mul_(1.1)
    moved = drifts(visits, tasks, learner.read([]))
    for episode in episodes:
        assert episode.ledger is not None
        changes = []
        for turn in range(len(episode.turns)):
            prompt, reply = episode.ledger.prompt(turn), episode.ledger.reply(turn)
            with torch.no_grad():
                logits = language.model(input_ids=torch.tensor([[*prompt, *reply]]), use_cache=False).logits[0]
            scores = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
            now = scores[torch.arange(len(reply)), torch.tensor(reply)].numpy()
            changes.append(np.abs(episode.ledger.reply_logprobs(turn) - now))
        assert moved[episode.task.id] == pytest.approx(np.concatenate(changes).mean(), rel=1e-4)
    assert min(moved.values()) > 1e-3


def of_task(name: str, tokens: int) -> Episode:
    ledger = Ledger()
    ledger.record([1] * (tokens - 1), [2], [-0.5], version=0)
    return Episode(EpisodeKey(0, "train/1", name, 0), Task(name, "train"), ledger=ledger)


@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=3), min_size=1, max_size=6), st.integers(3, 40))
def test_what_is_remembered_is_bounded_and_the_longest_unplayed_goes_first(steps, most):
    visits: dict[str, list[list[object]]] = {}
    order: list[str] = []
    for number, tasks in enumerate(steps, 1):
        visits = visited(visits, [of_task(task, number + 1) for task in tasks], most)
        order = [task for task in order if task not in tasks] + list(dict.fromkeys(tasks))
        assert sum(len(ids) for rows in visits.values() for ids, *_ in rows) <= most
        assert list(visits) == order[len(order) - len(visits) :]
        order = list(visits)
        for task in set(tasks) & visits.keys():
            assert [len(ids) for ids, *_ in visits[task]] == [number + 1] * tasks.count(task), "the last visit alone"


@pytest.mark.deep
def test_forgetting_by_drift_goes_on_to_the_bit_after_a_kill(tmp_path):
    config = short_guesses(
        credit={"advantage": {"name": "spo"}}, rollout={"tasks": 20, "group": 1}, learner={"minibatch": 10}
    )
    calm = resumed_to_the_bit(config, tmp_path)
    drifts = [line["drift"] for line in read_metrics(calm) if line["phase"] == "train"]
    assert drifts[0] is None and all(found > 0 for found in drifts[1:]), "32 tasks, 20 of them a step"
