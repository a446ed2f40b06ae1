"""Weights for a sampler that are cut off or changed on their way: a sampler draws with one version, or not at all.

What must hold: after each load every reply is of the new version, and its log-probabilities are those of the weights
of that version.
"""

import asyncio
import itertools
from pathlib import Path

import torch
from drawing import CLOSE, texts
from elsewhere import Wire, sampling
from guessing import open_files
from nodes import SILENCE
from tally import Tally

from manyturn.agents.engine.engine import Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.remote_samplers.remote_engine import RemoteEngine, Samplers
from manyturn.agents.engine.remote_samplers.weight_channel import Packed
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 8, 100
_PROMPT, _SAMPLING = [5, 6, 7, 8], Sampling(max_tokens=6)
_TEXT = 4 / 3  # bytes on the wire for one of weights
_LEAST = 1000  # bytes of a piece that can only be of weights


class Striking(Wire):
    """A wire that cuts its connections, or changes a byte, once so many bytes have passed.

    Attributes:
        struck: how often that has happened.
    """

    struck = 0

    def arm(self, after: float, changes: bool) -> None:
        at = self.passed + after

        def cut() -> None:
            if self.passed >= at:
                self.disarm()
                self.struck += 1
                self.cut()

        def changed(piece: bytes) -> bytes:
            if self.passed + len(piece) < at or len(piece) < _LEAST:
                return piece
            self.disarm()
            self.struck += 1
            middle = len(piece) // 2
            return piece[:middle] + bytes([piece[middle] ^ 1]) + piece[middle + 1 :]

        if changes:
            self.alter = changed
        else:
            self.watch = cut

    def disarm(self) -> None:
        self.watch, self.alter = lambda: None, lambda piece: piece


def run(count: int, seed: int, folder: Path) -> Tally:
    torch.set_num_threads(1)
    before = open_files()
    tally = asyncio.run(_run(count, seed, texts()))
    tally.orphans += max(0, open_files() - before)
    return tally


async def _run(count: int, seed: int, words: list[str]) -> Tally:
    rng, tally = generator("torn", seed), Tally()
    sources = [build_tiny(words, number, 256, torch.device("cpu"), width=32) for number in range(4)]
    context = EngineContext(sources[0].model, sources[0].template.end_ids, max_context=256)
    size = Packed(ModuleWeights(sources[0].model), 0).size * _TEXT
    async with sampling(2) as urls, Striking(urls[0]) as first, Striking(urls[1]) as second:
        asked = Samplers([first.url, second.url], wait=300.0, silence=SILENCE)
        engine = RemoteEngine(context, TransformersConfig(reproducible=False), asked)
        try:
            await engine.ready()
            await engine.wake()
            for version in itertools.count(1):
                if tally.injected >= count:
                    break
                before, source = first.struck + second.struck, sources[version % 4]
                for wire in (first, second)[version % 2 :]:
                    wire.arm(rng.uniform(0, 1) * size, changes=bool(rng.integers(2)))
                await engine.load(ModuleWeights(source.model), version)
                replies = [await _drawn(engine, seed, version, number) for number in range(4)]
                first.disarm()
                second.disarm()
                tally += _judged(first.struck + second.struck - before, replies, source, version)
        finally:
            await engine.shutdown()
    return tally


async def _drawn(engine: RemoteEngine, seed: int, version: int, number: int) -> Reply:
    key = EpisodeKey(seed, f"torn/{version}", "task", number)
    engine.open(key)
    try:
        return await engine.generate(key, 0, _PROMPT, _SAMPLING)
    finally:
        engine.close(key)


def _judged(struck: int, replies: list[Reply], source: LanguageModel, version: int) -> Tally:
    wrong = [reply for reply in replies if reply.version != version or _gap(source, reply) > CLOSE]
    notes = [f"version {version}: {len(wrong)} of {len(replies)} replies are of other weights"] if wrong else []
    return Tally(struck, 0 if wrong else struck, misattributed=len(wrong), notes=notes)


def _gap(source: LanguageModel, reply: Reply) -> float:
    """How far a reply's log-probabilities are from those of some weights, in nats."""
    with torch.inference_mode():
        ids = torch.tensor([_PROMPT + reply.ids])
        logits = source.model(input_ids=ids, use_cache=False).logits[0, len(_PROMPT) - 1 : -1]
    told = torch.log_softmax(logits, -1).gather(1, torch.tensor(reply.ids)[:, None])[:, 0]
    return float((told - torch.tensor(reply.logprobs)).abs().max())
