"""The engine within whole episodes, and everything that could leave somebody waiting for ever."""

import asyncio
import math
import threading

import pytest
import torch
from tiny_engine import key, make_engine, within

from manyturn.agents.engine.engine import EngineError, EngineRefused, GivenReply, Reply, Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.episode import Ending
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

pytestmark = pytest.mark.versions


def tokens(episodes) -> dict[EpisodeKey, list[list[int]]]:
    return {episode.key: [branch.ids for branch in episode.ledger.branches] for episode in episodes}


# ---- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_engines_logprobs_are_those_that_a_learner_computes(tiny, rollout, engine_gap, temperature):
    language = tiny()
    engine = make_engine(language)
    episodes = rollout(language, engine, sampling=Sampling(max_tokens=6, temperature=temperature))
    assert {episode.ending for episode in episodes} <= {Ending.TRUNCATED, Ending.COMPLETED}
    assert all(len(episode.ledger.branches) == 1 for episode in episodes)
    lengths = {span.end - span.start for episode in episodes for span in episode.ledger.spans}
    assert len(lengths) > 3, "replies should end at different lengths"
    rounding = 1e-4 / temperature  # that of float32 logits, which the temperature divides
    assert engine_gap(language.model, episodes, temperature) < rounding
    said = sum(span.end - span.start for episode in episodes for span in episode.ledger.spans)
    assert engine.drawn_tokens == said


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_given_replies_score_as_they_were_drawn_and_all_possible_ones_sum_to_one(tiny, rollout, temperature):
    language = tiny()
    engine = make_engine(language)
    episodes = rollout(language, engine, sampling=Sampling(max_tokens=6, temperature=temperature))
    turns = [(e.ledger, turn) for e in episodes for turn in range(len(e.ledger.spans))]
    given = [GivenReply(ledger.prompt(turn), ledger.reply(turn)) for ledger, turn in turns]
    every = [GivenReply([5, 6, 7], [token]) for token in range(engine.vocabulary)]
    whole, singles = within(60, engine.score([*given, *every], temperature)), given[::9]
    for (ledger, turn), row in zip(turns, whole[: len(given)], strict=True):
        assert row == pytest.approx(ledger.reply_logprobs(turn).tolist(), abs=1e-4, rel=1e-4)
    assert sum(math.exp(row[0]) for row in whole[len(given) :]) == pytest.approx(1, abs=1e-5)
    for reply, row in zip(singles, whole[: len(given) : 9], strict=True):
        assert within(60, engine.score([reply], temperature))[0] == pytest.approx(row, abs=1e-5)
    assert language.model.training == tiny().model.training


def test_replies_that_cannot_be_scored_are_errors(tiny):
    language = tiny()
    engine = make_engine(language)
    for prompt, reply in (([], [5]), ([5], [])):
        with pytest.raises(EngineError, match="leave it out"):
            within(60, engine.score([GivenReply(prompt, reply)]))
    with torch.no_grad():
        next(iter(language.model.parameters())).fill_(float("nan"))
    with pytest.raises(EngineError, match="damaged"):
        within(60, engine.score([GivenReply([5], [6])]))
    within(60, engine.sleep())
    with pytest.raises(EngineError, match="wake"):
        within(60, engine.score([GivenReply([5], [6])]))


@pytest.mark.deep
def test_what_is_drawn_depends_neither_on_the_batch_nor_on_the_order_nor_on_what_is_kept(tiny, rollout):
    language = tiny()
    expected = tokens(rollout(language, make_engine(language)))
    assert len({str(ids) for ids in expected.values()}) == 16
    cases = [
        ({"max_batch": 1}, {}),
        ({"max_batch": 7}, {}),
        ({}, {"limit": 5}),
        ({}, {"order": list(reversed(range(16)))}),
        ({"reproducible": False}, {}),
        ({"reproducible": False, "max_batch": 3}, {"order": [*range(8, 16), *range(8)]}),
        ({"cache_bytes": 360_000}, {}),
        ({"cache_bytes": 360_000, "reproducible": False}, {}),
    ]
    for engine_options, rollout_options in cases:
        drawn = tokens(rollout(language, make_engine(language, **engine_options), **rollout_options))
        assert drawn == expected, (engine_options, rollout_options)


def test_the_same_rollout_is_the_same_to_the_bit(tiny, rollout):
    language = tiny()
    first, second = (rollout(language, make_engine(language)) for _ in range(2))
    assert [e.ledger.branches[0].logprobs for e in first] == [e.ledger.branches[0].logprobs for e in second]


def test_only_new_tokens_are_computed_at_each_turn(tiny, rollout):
    language = tiny()
    engine = make_engine(language)
    episodes = rollout(language, engine)
    seen = sum(len(episode.ledger.prompt(len(episode.turns) - 1)) for episode in episodes)
    replied = sum(s.end - s.start for episode in episodes for s in episode.ledger.spans[:-1])
    again = sum(len(episode.ledger.spans) - 1 for episode in episodes)  # a reply's last token, read with the bridge
    assert engine.read_tokens == seen - replied + again


def test_a_window_whose_prompts_do_not_extend_each_other_is_computed_right(tiny, rollout, engine_gap):
    language = tiny()
    config = AgentConfig(context={"name": "window", "turns": 1}, instructions=False)
    episodes = rollout(language, make_engine(language), episodes=6, config=config)
    assert all(len(episode.ledger.branches) > 2 for episode in episodes)
    assert engine_gap(language.model, episodes, 1.0) < 1e-4
    one_by_one = rollout(language, make_engine(language, max_batch=1), episodes=6, config=config)
    assert tokens(one_by_one) == tokens(episodes)


def test_temperature_zero_takes_the_most_likely_token(tiny, rollout):
    language = tiny()
    episodes = rollout(language, make_engine(language), episodes=4, sampling=Sampling(max_tokens=5, temperature=0))
    for episode in episodes:
        (branch,) = episode.ledger.branches
        with torch.no_grad():
            best = language.model(torch.tensor([branch.ids])).logits[0].argmax(-1).tolist()
        for span in episode.ledger.spans:
            assert branch.ids[span.start : span.end] == best[span.start - 1 : span.end - 1]


def test_a_reply_that_was_cut_gets_its_end_token_exactly_once(tiny, rollout):
    language = tiny()
    end = language.template.end_id
    user = language.tokenizer.convert_tokens_to_ids("<|user|>")
    cut = 0
    for episode in rollout(language, make_engine(language), sampling=Sampling(max_tokens=3)):
        (branch,) = episode.ledger.branches
        for span in episode.ledger.spans[:-1]:
            stopped = branch.ids[span.end - 1] == end
            after = branch.ids[span.end : span.end + 2]
            assert after[0] == user if stopped else after == [end, user]
            assert branch.reply_mask[span.end] is False
            cut += not stopped
    assert cut > 10


def test_an_episode_that_outgrows_its_context_is_truncated_and_not_an_error(tiny, rollout):
    language = tiny()
    config = AgentConfig(instructions=False, max_context=100)
    episodes = rollout(language, make_engine(language), episodes=4, config=config)
    assert {(episode.ending, episode.cause) for episode in episodes} == {(Ending.TRUNCATED, "context")}
    assert all(0 < len(branch.ids) <= 100 for episode in episodes for branch in episode.ledger.branches)


def test_new_weights_are_drawn_with_and_forget_what_the_old_ones_computed(tiny, engine_gap):
    language, other = tiny(0), tiny(1)
    engine = make_engine(language)

    async def play() -> tuple[Reply, Reply]:
        engine.open(key(0))
        prompt = language.template.opening("", "The red room.")
        first = await engine.generate(key(0), 0, prompt, Sampling(max_tokens=4))
        await engine.load(ModuleWeights(other.model), 7)
        again = await engine.generate(key(0), 1, prompt + first.ids, Sampling(max_tokens=4))
        engine.close(key(0))
        return first, again

    first, again = within(10, play())
    assert (first.version, again.version) == (0, 7)
    fresh = make_engine(other)
    fresh.open(key(0))
    prompt = language.template.opening("", "The red room.") + first.ids
    expected = within(10, fresh.generate(key(0), 1, prompt, Sampling(max_tokens=4)))
    assert again.ids == expected.ids and again.logprobs == pytest.approx(expected.logprobs, abs=1e-5)


# ---- who waits for whom -------------------------------------------------------------------------------------


def test_no_session_is_left_open_and_nothing_is_kept_after_a_rollout(tiny, rollout):
    language = tiny()
    engine = make_engine(language)
    rollout(language, engine)
    assert not engine.episodes and not engine.cached and not engine.asking


def test_an_episode_that_closes_lets_the_waiting_ones_start(tiny):
    engine = make_engine(tiny())

    async def play() -> list[Reply]:
        for member in range(3):
            engine.open(key(member))
        asked = [asyncio.create_task(engine.generate(key(m), 0, [5, 6], Sampling(max_tokens=2))) for m in (0, 1)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in asked), "the third may still ask"
        engine.close(key(2))
        return await asyncio.gather(*asked)

    assert len(within(10, play())) == 2


def test_a_cancelled_request_neither_counts_nor_blocks_the_others(tiny):
    engine = make_engine(tiny())

    async def play() -> Reply:
        for member in range(3):
            engine.open(key(member))
        first, second = (
            asyncio.create_task(engine.generate(key(m), 0, [5, 6], Sampling(max_tokens=2))) for m in (0, 1)
        )
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        third = asyncio.create_task(engine.generate(key(2), 0, [5, 6], Sampling(max_tokens=2)))
        await asyncio.sleep(0.05)
        assert not second.done() and not third.done(), "the first is still open and may ask again"
        engine.close(key(0))
        await third
        return await second

    assert within(10, play()).ids


def test_cancelling_while_a_batch_is_computed_leaves_the_others_their_replies(tiny):
    language = tiny()
    engine = make_engine(language)
    entered, go_on = threading.Event(), threading.Event()

    def slow(*given):
        entered.set()
        assert go_on.wait(10)

    language.model.get_decoder().register_forward_pre_hook(slow)

    async def play() -> Reply:
        for member in range(2):
            engine.open(key(member))
        tasks = [asyncio.create_task(engine.generate(key(m), 0, [5, 6], Sampling(max_tokens=2))) for m in (0, 1)]
        await asyncio.to_thread(entered.wait, 10)
        tasks[0].cancel()
        engine.close(key(0))
        go_on.set()
        return await tasks[1]

    assert within(10, play()).ids
    assert engine.cached == {key(1)}, "nothing is kept for an episode that is gone"


@pytest.mark.parametrize("turns_of_the_loop", [1, 2, 3, 6])
def test_an_event_loop_that_ends_in_the_middle_leaves_the_engine_usable(tiny, rollout, turns_of_the_loop):
    language = tiny()
    engine = make_engine(language, reproducible=False)

    async def abandon() -> None:
        for member in range(2):
            engine.open(key(member))
        lost = asyncio.create_task(engine.generate(key(0), 0, [5, 6], Sampling(max_tokens=2)))
        for _ in range(turns_of_the_loop):  # what computes dies before it begins, or a little after
            await asyncio.sleep(0)
        engine.close(key(1))
        engine.close(key(0))
        assert not lost.done()

    async def ask_with_another_open() -> Reply:
        for member in range(2):
            engine.open(key(member))
        try:
            return await engine.generate(key(0), 0, [5, 6], Sampling(max_tokens=2))
        finally:
            for member in range(2):
                engine.close(key(member))

    asyncio.run(abandon())
    assert not engine.asking
    assert within(10, ask_with_another_open()).ids, "nothing of the loop that ended is waited for"
    assert tokens(rollout(language, engine, episodes=3)) == tokens(rollout(language, make_engine(language), episodes=3))


def test_a_running_batch_begins_without_those_who_do_not_ask(tiny):
    engine = make_engine(tiny(), reproducible=False)

    async def play() -> Reply:
        for member in range(2):
            engine.open(key(member))
        return await engine.generate(key(0), 0, [5, 6], Sampling(max_tokens=2))

    assert within(10, play()).ids


def test_requests_join_and_leave_while_others_are_drawn(tiny):
    """A short reply neither waits for a long one that has begun, nor ends with it."""
    engine = TransformersEngine(tiny().model, frozenset(), reproducible=False)  # no token ends a reply
    order = []

    async def ask(member: int, most: int) -> None:
        engine.open(key(member))
        reply = await engine.generate(key(member), 0, [5, 6, 7], Sampling(max_tokens=most))
        order.append((member, len(reply.ids)))
        engine.close(key(member))

    async def play() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(0, 60))
            while not engine.drawing:
                await asyncio.sleep(0)
            for member in (1, 2, 3):
                group.create_task(ask(member, 2 * member))

    within(60, play())
    assert order == [(1, 2), (2, 4), (3, 6), (0, 60)]


class Delayed(TransformersEngine):
    """Its replies arrive late, some more than others, as if environments took their time."""

    seed = 0

    async def generate(self, key, turn, prompt_ids, sampling):
        reply = await super().generate(key, turn, prompt_ids, sampling)
        await asyncio.sleep(generator("delay", self.seed, *key, turn).random() * 0.01)
        return reply


@pytest.mark.parametrize("cache_bytes", [None, 150_000], ids=["roomy", "tight"])
def test_bits_do_not_depend_on_when_environments_answer_even_where_room_is_short(tiny, rollout, cache_bytes):
    language, found = tiny(), []
    for seed in range(2):
        engine = Delayed(language.model, language.template.end_ids, max_batch=5, cache_bytes=cache_bytes)
        engine.seed = seed
        episodes = rollout(language, engine, episodes=8, max_turns=5, limit=6)
        found.append({e.key: [branch.logprobs for branch in e.ledger.branches] for e in episodes})
        again = engine.read_tokens
    assert found[0] == found[1]
    roomy = make_engine(language)
    rollout(language, roomy, episodes=8, max_turns=5)
    assert (again > roomy.read_tokens) == (cache_bytes is not None), "what was given up is read again"


def test_what_no_memory_can_hold_is_refused_and_not_tried_again(tiny):
    engine = make_engine(tiny(), cache_bytes=40_000)
    engine.open(key(0))
    with pytest.raises(EngineRefused, match=r"a prompt of 100 tokens .* raise engine.cache_gb"):
        within(10, engine.generate(key(0), 0, [5] * 100, Sampling(max_tokens=6)))


# ---- memory that runs out -----------------------------------------------------------------------------------


def scarce(language, rows: int, tokens: int = 10**9) -> None:
    """From now on the model asks for memory that does not exist, where a pass is of more rows or tokens than that."""

    def take(module, args, given) -> None:
        if len(given["past_key_values"].rows) > rows or given["input_ids"].numel() > tokens:
            torch.empty(2**60)

    language.model.get_decoder().register_forward_pre_hook(take, with_kwargs=True)


@pytest.mark.parametrize("reproducible", [True, False])
def test_out_of_memory_shrinks_the_batch_and_loses_no_episode(tiny, rollout, reproducible):
    language, plenty = tiny(), tiny()
    small = make_engine(plenty, max_batch=4, reproducible=reproducible)
    expected = rollout(plenty, small)
    engine = make_engine(language, max_batch=16, reproducible=reproducible)
    scarce(language, rows=4)
    episodes = rollout(language, engine)
    assert not any(episode.ending.is_error for episode in episodes)
    assert tokens(episodes) == tokens(expected)
    first, then = engine.figures(), engine.figures()
    assert first["batch_limit"] == then["batch_limit"] == 4 and first["out_of_memory"] == 2, "16, 8, 4"
    assert then["out_of_memory"] == 0 and then["read_seconds"] == then["draw_seconds"] == 0, "each is told once"
    assert first["read_seconds"] > 0 < first["draw_seconds"]
    if reproducible:
        assert [e.ledger.branches[0].logprobs for e in episodes] == [e.ledger.branches[0].logprobs for e in expected]


def test_a_prompt_too_long_for_memory_is_read_in_shorter_pieces(tiny):
    language = tiny()
    expected = make_engine(tiny())
    engine = make_engine(language)
    scarce(language, rows=1, tokens=40)
    replies = []
    for one in (expected, engine):
        one.open(key(0))
        replies.append(within(60, one.generate(key(0), 0, [*range(5, 205)], Sampling(max_tokens=4))))
    assert replies[0].ids == replies[1].ids
    assert replies[0].logprobs == pytest.approx(replies[1].logprobs, abs=1e-4)


def test_memory_that_suffices_for_nothing_is_an_error_that_says_so(tiny):
    language = tiny()
    scarce(language, rows=0)
    engine = make_engine(language)
    engine.open(key(0))
    with pytest.raises(EngineError, match="can't allocate memory"):
        within(60, engine.generate(key(0), 0, [5, 6, 7], Sampling(max_tokens=4)))
