"""What is learnt from replies that were limited: the distribution that was drawn from, and nothing of forced tokens."""

import asyncio
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.text.formats.tagged import TaggedConfig
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.learn.columns.drift import drifts, visited
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.samples import Sample, at_replies, samples_of
from manyturn.trainers.learn.reading.pre_update_pass import StepReading

LAMPS = f"{Path(__file__).parents[2] / 'lamps.py'}:Lamps"
CONFIG = AgentConfig(only_admissible=True, instructions=False, format=TaggedConfig())
COLOURS = ("red", "blue", "green")
REGULARISED = {"name": "clip", "kl": {"coef": 0.1}, "epo": {"coef": 0.05, "horizon": 8}}


@cache
def texts() -> list[str]:
    return asyncio.run(texts_of(open_seats(LAMPS), CONFIG, 9, 0))


def make(double: bool = False) -> LanguageModel:
    language = build_tiny(texts(), 0, 512, torch.device("cpu"), width=16, layers=2, heads=2)
    with torch.no_grad():
        for name, parameter in language.model.named_parameters():
            parameter.mul_(4 if "proj" in name else 1)  # as they come they hardly look at what was said before
    if double:
        language.model.double()
    return language


def play(language: LanguageModel, temperature: float = 1.0, teacher: bool = False) -> list[Episode]:
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(CONFIG, language.template, engine, Sampling(max_tokens=32, temperature=temperature))
    policy = Demonstrator(agent, Scripted(0.5)) if teacher else agent

    async def run() -> list[Episode]:
        async with open_seats(LAMPS) as seats:
            plan = [(task, EpisodeKey(0, "train/1", task.id, 0)) for task in seats.tasks("train")[:6]]
            return await gather(seats, policy, plan, max_turns=9, patience=Patience(1, 0.0))

    return asyncio.run(run())


@cache
def episodes() -> list[Episode]:
    return play(make())


def learner(language: LanguageModel, objective="reinforce", temperature=1.0, **options) -> Learner:
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, **options})
    made = Learner(language, config, OBJECTIVES.parse(objective).over(8), temperature)
    made.begin_reinforcement()
    return made


def possible(language: LanguageModel, ids: list[int], said: int) -> list[int]:
    """What could follow a beginning of a reply, found out from the commands themselves."""
    replies = [language.template.reply(CONFIG.reply_format.render(colour)) for colour in COLOURS]
    begun = ids[len(ids) - said :]
    return sorted({reply[said] for reply in replies if reply[:said] == begun})


def explicit(language: LanguageModel, sample: Sample, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy at what was said, by a softmax over the commands' tokens alone; with the gradient."""
    ids = sample.ids.tolist()
    logits = language.model(torch.tensor([ids])).logits[0] / temperature
    logprobs, entropies = [], []
    for place in np.flatnonzero(sample.reply_mask).tolist():
        start = place - int((sample.reply[:place] == sample.reply[place]).sum())
        tokens = possible(language, ids[:place], place - start)
        scores = torch.log_softmax(logits[place - 1][tokens], -1)
        logprobs.append(scores[tokens.index(ids[place])])
        entropies.append(-(scores.exp() * scores).sum())
    return torch.stack(logprobs), torch.stack(entropies)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_engine_and_learner_agree_with_a_softmax_over_the_commands_alone(temperature):
    language = make()
    samples = samples_of(play(language, temperature))
    step = learner(language, temperature=temperature).read(samples)
    for sample, logprob, entropy in zip(samples, step.logprob, step.entropy, strict=True):
        ours, spread = (values.detach().numpy() for values in explicit(language, sample, temperature))
        assert np.allclose(logprob.numpy()[sample.reply_mask], ours, atol=1e-5)
        assert np.allclose(sample.engine_logprob[sample.reply_mask], ours, atol=1e-5)
        assert np.allclose(entropy.numpy()[sample.reply_mask], spread, atol=1e-5)
    drawn = at_replies(samples, [sample.engine_logprob for sample in samples])
    assert (drawn == 0).sum() > 5 * (drawn < 0).sum() > 0, "most tokens of a tagged word should be forced"


def test_the_entropies_of_the_ledger_are_those_of_the_limited_distribution():
    language, [first, *_] = make(), episodes()
    [sample] = samples_of([first])
    _, spread = explicit(language, sample, 1.0)
    told = np.concatenate([first.ledger.reply_entropies(turn) for turn in range(len(first.turns))])
    assert np.allclose(told, spread.detach().numpy(), atol=1e-5)
    assert told.max() < math.log(len(COLOURS)) + 1e-5


def test_the_gradient_is_that_of_the_softmax_over_the_commands():
    language = make(double=True)
    samples = samples_of(episodes())
    made = learner(language, micro_tokens=64, max_grad_norm=1e9)
    for sample, row in zip(samples, made.read(samples).logprob, strict=True):
        sample.engine_logprob[:] = row.numpy()
    credit = [np.linspace(-1, 2, int(sample.reply_mask.sum()), dtype=np.float32) for sample in samples]
    gradient: list[torch.Tensor] = []
    update = made.optimizer.update

    def watched() -> float:
        gradient.extend(weights.grad.clone() for weights in made.optimizer.trained)
        return update()

    made.optimizer.update = watched
    made.learn(made.read(samples), np.concatenate(credit), 1.0, (0,))
    language = make(double=True)
    said = sum(map(len, credit))
    terms = [
        (explicit(language, sample, 1.0)[0] * torch.from_numpy(share)).sum()
        for sample, share in zip(samples, credit, strict=True)
    ]
    (-sum(terms) / said).backward()
    for ours, weights in zip(gradient, language.model.parameters(), strict=True):
        torch.testing.assert_close(ours, weights.grad, rtol=0, atol=1e-10)


def test_reference_and_entropy_terms_are_of_the_limited_distribution():
    language = make()
    samples = samples_of(episodes())
    made = learner(language, REGULARISED)
    kept = {name: value.clone() for name, value in language.model.state_dict().items()}
    with torch.no_grad():
        for weights in language.model.parameters():
            weights.add_(0.02 * torch.sin(torch.arange(weights.numel()).float()).view_as(weights))
    step = made.read(samples)
    before = make()
    before.model.load_state_dict(kept)
    expected = [explicit(before, sample, 1.0)[0].detach().numpy() for sample in samples]
    assert np.allclose(at_replies(samples, step.reference), np.concatenate(expected), atol=1e-5)
    told = made.learn(step, np.zeros(sum(int(sample.reply_mask.sum()) for sample in samples)), 1.0, (0,))
    entropy = np.concatenate([explicit(before, sample, 1.0)[1].detach().numpy() for sample in samples])
    assert told["reference_kl"] > 0 and abs(told["entropy"] - entropy.mean()) < 0.05


def test_replies_that_were_all_forced_teach_nothing():
    language = make()
    samples = [
        Sample(
            s.episode, s.ids, s.reply_mask, np.zeros(len(s)), s.reply, s.turns, {i: (int(s.ids[i]),) for i in s.allowed}
        )
        for s in samples_of(episodes())
    ]
    before = [weights.clone() for weights in language.model.parameters()]
    made = learner(language)
    told = made.learn(made.read(samples), np.ones(sum(int(s.reply_mask.sum()) for s in samples)), 1.0, (0,))
    assert told["grad_norm"] == 0 == told["engine_gap"]
    assert all(torch.equal(a, b) for a, b in zip(before, language.model.parameters(), strict=True))


def test_demonstrations_are_imitated_within_the_same_limits_and_their_surroundings_without():
    language = make(double=True)
    samples = samples_of(play(make(), teacher=True))
    assert all(set(np.flatnonzero(sample.reply_mask).tolist()) == set(sample.allowed) for sample in samples)
    with torch.no_grad():
        scores = torch.cat([explicit(language, sample, 1.0)[0] for sample in samples])
    told = learner(language).imitate(samples, 1e-3)
    assert told["loss"] == pytest.approx(float(-scores.mean()), abs=1e-9)
    language = make(double=True)
    whole, weight = 0.0, 0.0
    with torch.no_grad():
        for sample in samples:
            ids = torch.from_numpy(sample.ids)
            free = torch.log_softmax(language.model(ids[None]).logits[0], -1)[:-1].gather(-1, ids[1:, None])[:, 0]
            observed = ~sample.reply_mask[1:]
            whole -= float(explicit(language, sample, 1.0)[0].sum()) + 0.5 * float(free[observed].sum())
            weight += sample.reply_mask.sum() + 0.5 * observed.sum()
    assert learner(language).imitate(samples, 1e-3, observed=0.5)["loss"] == pytest.approx(whole / weight, abs=1e-9)


def test_what_was_possible_outlives_a_journal_and_a_memory_of_visits():
    language = make()
    for episode in episodes():
        again = episode_from_plain(episode_to_plain(episode), episode.task)
        assert again.ledger == episode.ledger and again.ledger.branches[0].allowed
    visits = visited({}, episodes(), most=10_000)
    reading = StepReading(learner(language).reader, [])
    moved = drifts(visits, [episode.key.task for episode in episodes()], reading)
    assert len(moved) == 6 and max(moved.values()) < 1e-5
