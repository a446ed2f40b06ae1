"""A learner whose policy is another one than that which chose among whole commands."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_rows import step_by_step
from learner_steps import in_double
from short_runs import resumed_to_the_bit, short_run

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.records.episode_rows import read_turns
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.text.command_tree import tree_of
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.trajectories.ledger_turns import ledger_from_plain, ledger_of, ledger_to_plain, said_of
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.learn.columns.drift import drifts, visited
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample, samples_of
from manyturn.trainers.learn.ranks.message import RankMessage

LAMPS = f"{Path(__file__).parents[2] / 'lamps.py'}:Lamps"
CONFIG = AgentConfig(only_admissible=True, choices="command", instructions=False)


@cache
def texts() -> list[str]:
    return asyncio.run(texts_of(open_seats(LAMPS), CONFIG, 9, 0))


def make(double: bool = False) -> LanguageModel:
    """A model whose commands are of several tokens, some of which begin alike."""
    language = build_tiny(texts(), 0, 270, torch.device("cpu"), width=16, layers=2, heads=2)
    with torch.no_grad():
        for name, parameter in language.model.named_parameters():
            parameter.mul_(4 if "proj" in name else 1)  # as they come they hardly look at what was said before
        language.model.model.norm.weight.mul_(0.5)
    if double:
        in_double(language.model)
    return language


@cache
def episodes() -> list[Episode]:
    language = make()
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(CONFIG, language.template, engine, Sampling(max_tokens=32))

    async def run() -> list[Episode]:
        async with open_seats(LAMPS) as seats:
            plan = [(task, EpisodeKey(0, "train/1", task.id, m)) for task in seats.tasks("train")[:4] for m in (0, 1)]
            return await gather(seats, agent, plan, max_turns=5, patience=Patience(1, 0.0))

    return asyncio.run(run())


def learner(language: LanguageModel, objective: Any = "reinforce", **options: Any) -> Learner:
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, "max_grad_norm": 1e9, **options})
    made = Learner(language, config, OBJECTIVES.parse(objective).over(8), 1.0)
    made.begin_reinforcement()
    return made


def dense(language: LanguageModel, sample: Sample, start: int) -> tuple[torch.Tensor, int]:
    """Log-probabilities of a turn's commands, each read in a row of its own; and the number of the chosen one."""
    prompt, replies = sample.ids[:start].tolist(), sample.commands[start].replies
    scores = []
    for reply in replies:
        logits = language.model(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
        scores.append(torch.log_softmax(logits, -1)[range(len(reply)), reply].sum())
    logs = torch.log_softmax(torch.stack(scores), -1)
    [said] = [i for i, reply in enumerate(replies) if tuple(sample.ids[start : start + len(reply)]) == reply]
    return logs, said


def richer(sample: Sample) -> Sample:
    """The same, with longer commands in its lists, some of which begin alike."""
    commands = {}
    for start, tree in sample.commands.items():
        words = [reply[0] for reply in tree.replies]
        longer = [(word, words[0], *other, 0) for word in words for other in ((), words[1:], words[:1])]
        commands[start] = tree_of((*tree.replies, *longer, (words[-1], words[-1], 0)))
    return replace(sample, commands=commands)


@cache
def expected() -> tuple[list[Sample], np.ndarray, dict[str, np.ndarray], list[torch.Tensor]]:
    """Samples, credit of their tokens, what each token's numbers should be, and the gradient of reinforce."""
    language, samples = make(double=True), [richer(sample) for sample in samples_of(episodes())]
    loss, numbers, credits = torch.zeros((), dtype=torch.float64), defaultdict[str, list[float]](list), list[float]()
    for number, sample in enumerate(samples):
        for start, tree in sample.commands.items():
            logs, said = dense(language, sample, start)
            shares = dict(zip(tree.replies, logs.exp().tolist(), strict=True))
            logprobs, entropies = step_by_step(shares, list(tree.replies[said]))
            assert sum(entropies) > 0.1 and abs(sum(logprobs) - float(logs[said].detach())) < 1e-12
            credit = float(np.float32(np.sin(3 * start + number)))
            loss = loss - credit * logs[said]
            credits += [credit] * len(logprobs)
            numbers["logprob"] += logprobs
            numbers["entropy"] += entropies
    (loss / len(credits)).backward()
    gradient = [weights.grad.clone() for weights in language.model.parameters()]
    return samples, np.array(credits), {name: np.array(row) for name, row in numbers.items()}, gradient


@pytest.mark.parametrize(("packing", "micro_tokens"), [("auto", 64), ("packed", 16384), ("trie", 64), ("trie", 16384)])
def test_the_gradient_is_that_of_a_softmax_over_whole_commands(packing, micro_tokens):
    samples, credit_T, numbers, exact = expected()
    made = learner(make(double=True), packing=packing, micro_tokens=micro_tokens)
    step, gradient, update = made.read(samples), list[torch.Tensor](), made.optimizer.update
    assert np.allclose(step.at_replies(step.logprob), numbers["logprob"], atol=1e-6)
    assert np.allclose(step.at_replies(step.entropy), numbers["entropy"], atol=1e-6)
    made.optimizer.update = lambda: (gradient.extend(w.grad.clone() for w in made.optimizer.trained), update())[1]
    figures = made.learn(step, credit_T, 1.0, (0,))
    assert max(float(weights.abs().max()) for weights in gradient) > 1e-3
    for ours, theirs in zip(gradient, exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
    if packing == "packed":
        tokens, listed = sum(map(len, samples)), sum(sample.listed for sample in samples)
        assert figures["packing_ratio"] == pytest.approx(1 + listed / tokens)


def test_lists_travel_with_journals_trajectories_ranks_and_drift():
    for episode in episodes():
        ledger = episode.ledger
        again = episode_from_plain(json.loads(json.dumps(episode_to_plain(episode))), episode.task).ledger
        others = [again, ledger_of(said_of(ledger), ledger.unanswered), ledger_from_plain(ledger_to_plain(ledger))]
        assert ledger.branches[0].commands and all(repr(other) == repr(ledger) for other in others)
    samples, message = samples_of(episodes()), RankMessage("step")
    message.put_samples(samples)
    arrived = RankMessage.decoded(message.encoded()).samples()
    assert [{k: tree.replies for k, tree in s.commands.items()} for s in arrived] == [
        {k: tree.replies for k, tree in s.commands.items()} for s in samples
    ]
    remembered = json.loads(json.dumps(visited({}, episodes(), 10**6)))
    moved = drifts(remembered, list(remembered), learner(make()).read(samples))
    assert moved and max(moved.values()) < 1e-5


def test_padded_rows_are_refused_before_and_while_they_are_read():
    with pytest.raises(ValueError, match=r"learner\.packing = 'padding' .* agent\.choices = 'command'"):
        run({"learner": {"packing": "padding"}})
    with pytest.raises(LearningFailed, match=r"set learner\.packing = 'auto'"):
        _ = learner(make(), packing="padding").read(samples_of(episodes())).logprob


def run(changes: dict[str, Any]) -> Any:
    agent = {"only_admissible": True, "choices": "command", "instructions": False}
    return short_run(**{"env": {"id": LAMPS}, "agent": agent, "learner": {"minibatch": 9, "lr": 0.05}, **changes})


@pytest.mark.deep
def test_a_run_begins_each_step_at_ratio_one_and_goes_on_to_the_bit_after_a_kill(tmp_path):
    objective = {"name": "clip", "correction": {"level": "sequence"}, "kl": {"coef": 0.01}, "entropy": {"coef": 0.01}}
    folder = resumed_to_the_bit(run({"objective": objective}), tmp_path)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if line["phase"] == "train"]
    assert len(trained) == 5 and all(abs(line["approx_kl"]) < 1e-6 for line in trained)
    assert all(line["engine_kl"] < 1e-8 and line["effective_samples"] > 0.999 for line in trained)
    turns = [row for file in sorted((folder / "turns").iterdir()) for row in read_turns(file) if row["turn"] == 0]
    chances: dict[tuple[str, str], dict[str, float]] = {}
    for row in turns:
        place = row["stage"], row["task"]
        chances.setdefault(place, {})[row["reply"]] = float(np.exp(np.sum(row["logprobs"])))
    complete = [sum(own.values()) for own in chances.values() if len(own) == 3]
    assert complete and np.allclose(complete, 1, atol=1e-4), "the chances of all commands add up to 1"
