"""Choice among whole commands: what is drawn and with what numbers, however it is read, batched and learnt from."""

import asyncio
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from drawn_rows import Drawing, make_model, row, step_by_step
from tiny_engine import key, make_engine, within

from manyturn.agents.engine.decoding import command_choice
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.engine import Capabilities, Sampling
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.text.choice_decoding import Choices, ReplyChoices
from manyturn.agents.text.formats.free_text import FreeText, FreeTextConfig
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.samples import samples_of

LAMPS = f"{Path(__file__).parents[2] / 'trainers' / 'lamps.py'}:Lamps"
COMMANDS = ("north", "nouns", "earth", "eagle")
CONFIG = AgentConfig(only_admissible=True, choices="command", instructions=False)
TREES = ([(5, 1), (5, 6, 1), (7, 8, 9, 1), (7, 8, 6, 1)], [(1,), (2,)], [(9, 1)])


def free_logprobs(model: torch.nn.Module, prompt: list[int], reply: tuple[int, ...], heat: float) -> np.ndarray:
    """A reply's tokens among all tokens, by a pass over nothing else."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *reply]]), use_cache=False).logits[0].double() / (heat or 1)
    return torch.log_softmax(logits, -1)[range(len(prompt) - 1, len(prompt) + len(reply) - 1), reply].numpy()


def assert_chosen(model: torch.nn.Module, one: Row) -> None:
    """A row's reply is the one that its noise draws out of commands weighed one by one."""
    scores = [free_logprobs(model, one.prompt, reply, one.temperature) for reply in one.choices.replies]
    shares = np.exp([score.sum() for score in scores])
    reached = np.searchsorted(shares.cumsum(), one.noise[0] * shares.sum(), side="right")
    expected = int(reached if one.temperature else shares.argmax())
    assert tuple(one.ids) == one.choices.replies[expected]
    logprobs, entropies = step_by_step(dict(zip(one.choices.replies, shares, strict=True)), one.ids)
    assert np.allclose(one.logprobs, logprobs, atol=1e-4) and np.allclose(one.entropies, entropies, atol=1e-4)


@pytest.mark.parametrize("heat", [1.0, 0.5])
def test_commands_come_as_often_as_free_replies_would_be_them(tiny, heat):
    language, count = tiny(), 600
    with torch.no_grad():
        language.model.model.norm.weight.mul_(0.02)  # less sure than it is, so that several commands come
    choices = ReplyChoices(FreeText(FreeTextConfig()), language.template, "command").of(COMMANDS)
    prompt, engine = language.template.opening("", "Where to?"), make_engine(language)

    async def drawn():
        for member in range(count):
            engine.open(key(member))
        asked = (
            engine.choose(key(m), 0, prompt, Sampling(max_tokens=20, temperature=heat), choices) for m in range(count)
        )
        return await asyncio.gather(*asked)

    replies = within(120, drawn())
    scores = {reply: free_logprobs(language.model, prompt, reply, heat) for reply in choices.replies}
    listed = math.fsum(math.exp(score.sum()) for score in scores.values())
    shares = {ids: math.exp(score.sum()) / listed for ids, score in scores.items()}
    for reply in replies[:200]:
        assert np.allclose(reply.logprobs, step_by_step(shares, reply.ids)[0], atol=3e-5) and reply.finish == "stop"
        assert math.isclose(sum(reply.logprobs), math.log(shares[tuple(reply.ids)]), abs_tol=1e-4)
    times = Counter(tuple(reply.ids) for reply in replies)
    for ids, share in shares.items():
        assert abs(times[ids] - count * share) < 4.5 * math.sqrt(count * share * (1 - share)) + 1
    assert len(times) > 1


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
@pytest.mark.parametrize("tokens", [4096, 16])
def test_rows_of_all_kinds_share_passes_and_read_long_prompts_in_pieces(kind, tokens, monkeypatch):
    model = make_model(kind)
    monkeypatch.setattr(command_choice, "_LOGITS", 40 * 7)  # the states of a row are in different pieces
    drawing = Drawing(model)
    drawing.decoder.pass_tokens = tokens
    rows = {n: row(n, length=1 + 17 * n % 150, limit=4, heat=(1.0, 0.5, 0.0)[n % 3]) for n in range(16)}
    units = {n: ("command", "command", "token", None)[n % 4] for n in rows}
    for n, one in rows.items():
        one.choices = None if units[n] is None else Choices(TREES[n % (3 if units[n] == "command" else 2)], units[n])
    alone = {n: Row(one.prompt, one.noise, one.temperature, one.choices) for n, one in rows.items()}
    drawing.draw(rows)
    for n, one in rows.items():
        Drawing(model).draw({0: alone[n]})
        assert one.ids == alone[n].ids and np.allclose(one.logprobs, alone[n].logprobs, atol=1e-4)
        if units[n] == "command":
            assert_chosen(model, one)


def test_a_later_turn_reads_the_chosen_command_and_none_of_the_others():
    model, choices, prompt, read = make_model("llama"), Choices(TREES[0], "command"), row(0, 30, 1).prompt, 0
    drawing = Drawing(model)
    for turn in range(6):
        one = Row(prompt, row(turn, 1, 5).noise, 1.0, choices)
        drawing.draw({0: one})
        assert_chosen(model, one)
        assert one.cached == read, "only what is new is computed"
        read, prompt = len(one.prompt), [*one.prompt, *one.ids, *row(turn, 3, 1).prompt]


def test_whole_episodes_are_the_same_in_batches_of_any_size(tiny, rollout):
    language = tiny()
    first, *others = (
        rollout(language, make_engine(language, **options), config=CONFIG)
        for options in ({}, {"reproducible": False}, {"max_batch": 3}, {"cache_bytes": 300_000})
    )
    for episodes in others:
        assert [e.ledger.branches[0].ids for e in episodes] == [e.ledger.branches[0].ids for e in first]
    assert all(turn.valid for episode in first for turn in episode.turns)
    assert not any(episode.ledger.branches[0].allowed for episode in first)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_learner_has_the_numbers_of_the_sampler(tiny, temperature):
    language = tiny()
    agent = Agent(CONFIG, language.template, make_engine(language), Sampling(max_tokens=8, temperature=temperature))

    async def play(policy):
        async with open_seats(LAMPS) as seats:
            plan = [(task, EpisodeKey(0, "train/1", task.id, 0)) for task in seats.tasks("train")[:6]]
            return await gather(seats, policy, plan, max_turns=6, patience=Patience(1, 0.0))

    samples = samples_of(asyncio.run(play(agent)))
    learner = Learner(language, LearnerConfig(), OBJECTIVES.parse("reinforce").over(8), temperature)
    learner.begin_reinforcement()
    step = learner.read(samples)
    for sample, logprob in zip(samples, step.logprob, strict=True):
        assert np.allclose(sample.engine_logprob, logprob.numpy() * sample.reply_mask, atol=1e-5)
        assert len(sample.commands) == sample.turns, "each reply has its list"
    shown = samples_of(asyncio.run(play(Demonstrator(agent, Scripted(0.5)))))
    assert shown and not any(sample.allowed for sample in shown), "imitated among all of the vocabulary"


def test_an_engine_without_it_is_refused_by_name(tiny):
    language = tiny()
    engine = make_engine(language)
    engine.capabilities = Capabilities(choices=True)
    with pytest.raises(ValueError, match=r"agent\.choices = 'command' .* engine\.name = 'transformers'"):
        Agent(CONFIG, language.template, engine, Sampling())
