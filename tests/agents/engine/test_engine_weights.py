"""An engine that draws with other weights than it says: damaged, half loaded, of another model, or after a sleep."""

import asyncio
import copy
import threading

import pytest
import torch
from tiny_engine import key, make_engine, within

from manyturn.agents.engine.engine import EngineError, Reply, Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import load_pretrained
from manyturn.agents.model.model_internals import move
from manyturn.agents.play.episode import Ending

pytestmark = pytest.mark.versions


def test_damaged_weights_end_episodes_as_errors_and_the_engine_recovers(tiny, rollout):
    language = tiny()
    engine = make_engine(language)
    good = {name: tensor.clone() for name, tensor in language.model.state_dict().items()}
    with torch.no_grad():
        language.model.model.norm.weight.fill_(float("nan"))
    episodes = rollout(language, engine, episodes=4)
    assert {episode.ending for episode in episodes} == {Ending.INFRA_ERROR}
    assert all("NaN" in episode.cause for episode in episodes)
    assert not engine.episodes and not engine.asking
    language.model.load_state_dict(good)
    asyncio.run(engine.load(ModuleWeights(language.model), 1))
    assert {episode.ending for episode in rollout(language, engine, episodes=4)} <= {
        Ending.TRUNCATED,
        Ending.COMPLETED,
    }


def test_a_failure_in_one_part_of_a_batch_spares_the_other_parts(tiny):
    engine = make_engine(tiny(), max_batch=1)

    async def play():
        for member in range(2):
            engine.open(key(member))
        return await asyncio.gather(
            engine.generate(key(0), 0, [5, 10**9], Sampling(max_tokens=2)),  # no such token
            engine.generate(key(1), 0, [5, 6], Sampling(max_tokens=2)),
            return_exceptions=True,
        )

    bad, good = within(10, play())
    assert isinstance(bad, EngineError) and good.ids


@pytest.mark.parametrize("copied", [False, True])
def test_after_a_sleep_it_answers_as_if_it_had_not_slept(tiny, copied):
    language = tiny()
    engine = make_engine(language, copied=copied)

    async def play() -> tuple[Reply, Reply, Reply]:
        engine.open(key(0))
        prompt = language.template.opening("", "The red room.")
        first = await engine.generate(key(0), 0, prompt, Sampling(max_tokens=4))
        await engine.sleep()
        await engine.sleep()
        assert not engine.cached, "memory is the learner's now"
        with pytest.raises(EngineError, match="sleeps: wake it"):
            await engine.generate(key(0), 0, prompt, Sampling(max_tokens=4))
        await engine.wake()
        await engine.wake()
        again = await engine.generate(key(0), 0, prompt, Sampling(max_tokens=4))
        await engine.sleep()
        await engine.load(ModuleWeights(tiny(seed=1).model), 5)
        await engine.wake()
        return first, again, await engine.generate(key(0), 0, prompt, Sampling(max_tokens=4))

    first, again, newer = within(20, play())
    assert again == first
    assert newer.version == 5 and newer.logprobs != first.logprobs


def test_nothing_of_an_engine_runs_on_after_its_end(tiny, rollout):
    before = set(threading.enumerate())
    language = tiny()
    engine = make_engine(language)
    rollout(language, engine, episodes=2)
    assert set(threading.enumerate()) - before
    asyncio.run(engine.shutdown())
    assert not set(threading.enumerate()) - before


def test_two_episodes_under_one_key_and_an_empty_prompt_are_refused(tiny):
    engine = make_engine(tiny())
    engine.open(key(0))
    with pytest.raises(ValueError, match="open already"):
        engine.open(key(0))
    with pytest.raises(EngineError, match="empty prompt"):
        within(10, engine.generate(key(0), 0, [], Sampling()))


def test_a_lower_precision_copy_follows_the_learner(tiny):
    """On a GPU the engine draws with a bfloat16 copy of float32 weights: after load it is the learner's policy."""
    learner, other = tiny(), tiny(seed=1)
    drawn_with = copy.deepcopy(other.model)
    move(drawn_with, torch.bfloat16)
    engine = TransformersEngine(drawn_with, other.template.end_ids)
    asyncio.run(engine.load(ModuleWeights(learner.model), 3))
    for mine, theirs in zip(drawn_with.parameters(), learner.model.parameters(), strict=True):
        assert mine.dtype is torch.bfloat16 and torch.equal(mine, theirs.to(torch.bfloat16))
    assert engine.precision == "bfloat16", "or rounding is taken for wrong weights, and the run stops"

    async def draw() -> Reply:
        engine.open(key(0))
        return await engine.generate(key(0), 0, learner.template.opening("", "The red room."), Sampling(max_tokens=4))

    reply = within(30, draw())
    assert reply.version == 3 and len(reply.ids) == len(reply.logprobs) > 0


def test_a_lower_precision_copy_knows_positions_as_exactly_as_a_model_that_was_loaded_so(tiny, tmp_path):
    """In bfloat16 the frequencies of rotary positions turn the positions of a long prompt into others."""
    language = tiny()
    language.save(tmp_path)
    loaded, copied = load_pretrained(str(tmp_path), torch.device("cpu"), dtype="bfloat16").model, language.model
    move(copied, torch.bfloat16)
    theirs, ours = dict(loaded.named_buffers()), dict(copied.named_buffers())
    assert theirs.keys() == ours.keys() and len(ours) > 0
    assert all(torch.equal(ours[name], theirs[name]) and ours[name].dtype is theirs[name].dtype for name in ours)
    inputs = {"input_ids": torch.arange(5, 25)[None], "position_ids": torch.arange(3000, 3020)[None]}
    with torch.no_grad():
        states = [model.get_decoder()(**inputs).last_hidden_state for model in (copied, loaded)]
    assert torch.equal(*states)


def _other_name(tensors):
    return [("another.weight", tensors[0][1]), *tensors[1:]]


def _broadcast(tensors):
    return [(name, tensor.reshape(-1)[:1]) for name, tensor in tensors]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_other_name, "of another model: another.weight"),
        (_broadcast, r"of another model: .* of shape \(1,\)"),
        (lambda tensors: tensors[:-1], "incomplete: there is no lm_head.bias"),
    ],
    ids=["a name", "a shape", "too few"],
)
def test_weights_of_another_model_are_refused(tiny, monkeypatch, change, told):
    """copy_ would spread a single number over a whole matrix."""
    other = ModuleWeights(tiny(seed=1).model)
    found = list(other.tensors())
    monkeypatch.setattr(other, "tensors", lambda: iter(change(found)))
    with pytest.raises(EngineError, match=told):
        asyncio.run(make_engine(tiny()).load(other, 1))


def test_after_a_load_that_broke_off_nothing_is_drawn_until_one_succeeds(tiny, monkeypatch):
    language, other = tiny(), ModuleWeights(tiny(seed=1).model)
    engine = TransformersEngine(copy.deepcopy(language.model), language.template.end_ids)
    whole = other.tensors

    def breaking():
        yield next(whole())
        raise RuntimeError("gone")

    monkeypatch.setattr(other, "tensors", breaking)
    with pytest.raises(RuntimeError, match="gone"):
        asyncio.run(engine.load(other, 1))

    async def ask() -> Reply:
        engine.open(key(0))
        try:
            return await engine.generate(key(0), 0, [1, 2], Sampling(max_tokens=2))
        finally:
            engine.close(key(0))

    with pytest.raises(EngineError, match="half new"):
        within(20, ask())
    asyncio.run(engine.load(ModuleWeights(language.model), 2))
    assert within(20, ask()).version == 2
