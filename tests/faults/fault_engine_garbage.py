"""An engine that answers nonsense: it is refused, and the episode that is played again equals the undisturbed one."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from drawing import SAMPLING, difference, model, play, texts
from tally import Tally

from manyturn.agents.engine.engine import Engine, EngineError, Reply, Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 30, 200
_EPISODES, _SHARE, _VERSION = 32, 0.1, 3


def _last(name: str, value: object) -> Callable[[Reply], Reply]:
    """Puts a value in the place of the last one of a list."""
    return lambda reply: reply._replace(**{name: [*getattr(reply, name)[:-1], value]})


def _longer(reply: Reply, count: int = SAMPLING.max_tokens) -> Reply:
    """As many more tokens as make it too long, with numbers that could be theirs."""
    ids = [reply.ids[0], *[65] * count]
    return Reply(ids, [-1.0] * len(ids), "length", reply.version, [1.0] * len(ids))


GARBAGE: dict[str, Callable[[Reply], object] | Exception] = {
    "NaN log-probability": _last("logprobs", math.nan),
    "infinite log-probability": _last("logprobs", math.inf),
    "impossible log-probability": _last("logprobs", -math.inf),
    "positive log-probability": _last("logprobs", 0.5),
    "log-probability that is text": _last("logprobs", "-0.5"),
    "NaN entropy": _last("entropies", math.nan),
    "negative entropy": _last("entropies", -0.5),
    "entropy above the uniform one": _last("entropies", 99.0),
    "id beyond the vocabulary": _last("ids", 10**6),
    "negative id": _last("ids", -1),
    "id that is no integer": _last("ids", 5.0),
    "id that is nothing": _last("ids", None),
    "a log-probability too few": lambda reply: reply._replace(logprobs=reply.logprobs[1:]),
    "a log-probability too many": lambda reply: reply._replace(logprobs=[*reply.logprobs, -1.0]),
    "an entropy too few": lambda reply: reply._replace(entropies=reply.entropies[1:]),
    "a token too many": lambda reply: reply._replace(ids=[*reply.ids, 65]),
    "empty": lambda reply: reply._replace(ids=[], logprobs=[], entropies=[]),
    "longer than allowed": _longer,
    "much longer than allowed": lambda reply: _longer(reply, 100_000),
    "stale": lambda reply: reply._replace(version=reply.version - 1),
    "no version": lambda reply: reply._replace(version=None),
    "the other ending": lambda reply: reply._replace(finish="length" if reply.finish == "stop" else "stop"),
    "no ending": lambda reply: reply._replace(finish=""),
    "nothing": lambda reply: None,
    "a plain tuple": tuple,
    "EngineError": EngineError("out of memory"),
    "RuntimeError": RuntimeError("CUDA error: device-side assert triggered"),
    "KeyError": KeyError("logprobs"),
    "TimeoutError": TimeoutError(),
    "ConnectionResetError": ConnectionResetError("peer"),
}


class Garbling(Engine):
    """Passes on what an engine draws, save for a share of the replies: those are spoilt in each way in turn.

    Attributes:
        sent: how often each kind was handed out.
        accepted: episodes that went on after a spoilt reply.
    """

    def __init__(self, engine: TransformersEngine, count: int, seed: int):
        self.vocabulary, self.version = engine.vocabulary, engine.version
        self.capabilities = engine.capabilities
        self.sent: Counter[str] = Counter()
        self.accepted: list[EpisodeKey] = []
        self._engine, self._count, self._seed = engine, count, seed
        self._came: Counter[tuple[EpisodeKey, int]] = Counter()
        self._spoilt: set[EpisodeKey] = set()
        self._order = generator("kinds of nonsense", seed).permutation(sorted(GARBAGE)).tolist()

    def open(self, key: EpisodeKey) -> None:
        self._spoilt.discard(key)
        self._engine.open(key)

    def close(self, key: EpisodeKey) -> None:
        self._engine.close(key)

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        if key in self._spoilt:
            self.accepted.append(key)
        reply = await self._engine.generate(key, turn, prompt_ids, sampling)
        self._came[key, turn] += 1
        draw = generator("nonsense", self._seed, key, turn, self._came[key, turn]).random()
        if draw >= _SHARE or self.sent.total() >= self._count:
            return reply
        kind = self._order[self.sent.total() % len(self._order)]
        if kind == "stale" and turn == 0:
            return reply  # nobody can tell before there was another version
        self.sent[kind] += 1
        self._spoilt.add(key)
        garbage = GARBAGE[kind]
        if isinstance(garbage, Exception):
            raise garbage
        return garbage(reply)  # type: ignore[return-value]  # that is the fault


def run(count: int, seed: int, folder: Path) -> Tally:
    language = model(texts(), seed)
    # Batches are others than without faults. In float32 that moves logits enough to draw another token now and then.
    language.model.double()
    engines = [TransformersEngine(language.model, language.template.end_ids) for _ in range(2)]
    for engine in engines:
        asyncio.run(engine.load(ModuleWeights(language.model), _VERSION))
    calm, garbling = engines[0], Garbling(engines[1], count, seed)
    tally, first = Tally(), 0
    while garbling.sent.total() < count:
        plan = range(first, first + _EPISODES)
        undisturbed = asyncio.run(play(language, calm, plan, seed))
        disturbed = asyncio.run(play(language, garbling, plan, seed))
        for ours, theirs in zip(disturbed, undisturbed, strict=True):
            found = difference(ours, theirs)
            if found:
                tally.lost += 1
                tally.notes.append(f"{ours.key}: {found} {ours.cause}"[:200])
        first += _EPISODES
    tally.injected, tally.misattributed = garbling.sent.total(), len(garbling.accepted)
    tally.survived = tally.injected - min(tally.injected, tally.lost + tally.misattributed)
    tally.notes += [f"{key}: went on after a spoilt reply" for key in garbling.accepted]
    return tally
