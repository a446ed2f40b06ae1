"""New weights that arrive in part, or while a batch is being drawn: no token is drawn with weights of another version.

What must hold: after a load that failed the engine refuses to draw until one succeeds. Every token of every episode has
the log-probability that the weights of its labelled version give it.
"""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from drawing import CLOSE, SAMPLING, model, play, texts
from tally import Tally

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 4, 20
_EPISODES = 6
_HELD = 20.0  # seconds at most that a batch is held until the load has come


class Interrupted:
    """Weights that stop coming after a number of tensors.

    Args:
        fault: what is raised then; None: there are simply no more; a tensor: comes in the place of the next one.
    """

    module = None

    def __init__(self, source: LanguageModel, after: int, fault: BaseException | torch.Tensor | None):
        self._source, self._after, self._fault = ModuleWeights(source.model), after, fault

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for number, (name, tensor) in enumerate(self._source.tensors()):
            if number < self._after:
                yield name, tensor
            elif isinstance(self._fault, torch.Tensor):
                yield name, self._fault
            elif self._fault is not None:
                raise self._fault
            else:
                return


class Bench:
    """An engine, the weights of every version that it ever had, and what it did.

    Attributes:
        tally: faults that came about, and what went wrong.
    """

    def __init__(self, seed: int):
        self.words, self.seed, self.tally = texts(), seed, Tally()
        self.sources = [model(self.words, seed)]
        drawn_with = model(self.words, seed).model
        # So that a batch can be held where its thread computes.
        drawn_with.get_decoder().register_forward_pre_hook(self._held)
        self.engine = TransformersEngine(drawn_with, self.sources[0].template.end_ids)
        self._passes_left = 0
        self._entered = threading.Event()

    def _held(self, module: torch.nn.Module, inputs: tuple[object, ...]) -> None:
        self._passes_left -= 1
        if self._passes_left == 0:
            self._entered.set()
            waited = time.monotonic()
            while not self._load_waits() and time.monotonic() - waited < _HELD:
                time.sleep(0.001)

    def _load_waits(self) -> bool:
        """Whether a load has come: it waits for the thread that computes."""
        return self.engine._runner._work_queue.qsize() > 0

    async def play(self, number: int) -> list[Episode]:
        return await play(self.sources[0], self.engine, range(_EPISODES), self.seed + number)

    async def play_until(self, number: int, passes: int) -> asyncio.Task[list[Episode]]:
        """Begin to play; returns while the thread is in the middle of a batch."""
        self._entered.clear()
        self._passes_left = passes
        playing = asyncio.create_task(self.play(number))
        assert await asyncio.to_thread(self._entered.wait, 60), "episodes ended before that pass"
        return playing

    def next_weights(self) -> LanguageModel:
        """Weights of a version that does not exist yet."""
        return model(self.words, self.seed + len(self.sources))

    async def load(self, language: LanguageModel) -> None:
        """The next version, whole."""
        await self.engine.load(ModuleWeights(language.model), len(self.sources))
        self.sources.append(language)

    def bad(self, text: str) -> None:
        self.tally.misattributed += 1
        self.tally.notes.append(text[:200])

    def examine(self, episodes: Sequence[Episode]) -> None:
        """Compute every said token anew with the weights of its label."""
        for episode in episodes:
            if episode.ending.is_error or episode.ledger is None:
                self.tally.lost += 1
                self.tally.notes.append(f"{episode.key}: {episode.ending} {episode.cause}"[:200])
                continue
            for turn, span in enumerate(episode.ledger.spans):
                ids = episode.ledger.branches[span.branch].ids[: span.end]
                theirs = _logprobs(self.sources[span.version], ids)[span.start - 1 :]
                ours = torch.tensor(episode.ledger.reply_logprobs(turn))
                gap = float((ours - theirs).abs().max())
                if not gap < CLOSE:
                    self.bad(f"{episode.key} turn {turn}: {gap:.2g} nats from what version {span.version} gives")


def _logprobs(language: LanguageModel, ids: list[int]) -> torch.Tensor:
    """Log-probabilities (T - 1,) of ids[1:] by one pass over the sequence."""
    with torch.inference_mode():
        scores = torch.log_softmax(language.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0], -1)
    return scores[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0].double()


async def _refuses(bench: Bench, number: int) -> None:
    """Half-new weights must not draw."""
    key = EpisodeKey(bench.seed, "probe", str(number), 0)
    bench.engine.open(key)
    try:
        await asyncio.wait_for(bench.engine.generate(key, 0, [5, 6], SAMPLING), 10)
        bench.bad(f"fault {number}: drew with half-new weights")
    except EngineError:
        pass
    finally:
        bench.engine.close(key)


async def _load_fails(bench: Bench, number: int, rng: np.random.Generator) -> None:
    """In the middle of episodes a load raises part of the way; a later one succeeds."""
    fresh = bench.next_weights()
    count = sum(1 for _ in fresh.model.parameters())
    faults = (RuntimeError("connection lost"), KeyboardInterrupt(), None, torch.zeros(3, 5, 7), MemoryError())
    half = Interrupted(fresh, int(rng.integers(0, count)), faults[number // 3 % len(faults)])
    playing = await bench.play_until(number, int(rng.integers(1, 20)))
    try:
        await bench.engine.load(half, len(bench.sources))
    except (Exception, KeyboardInterrupt):
        bench.tally.injected += 1
    await _refuses(bench, number)
    await bench.load(fresh)
    bench.examine(await playing)


async def _cancelled(bench: Bench, number: int, rng: np.random.Generator) -> None:
    """All episodes are cancelled while a batch is being drawn, and new weights are loaded at once."""
    fresh = bench.next_weights()
    playing = await bench.play_until(number, int(rng.integers(1, 20)))
    playing.cancel()
    await asyncio.wait([playing])
    bench.tally.injected += playing.cancelled()
    await bench.load(fresh)
    again = await bench.play(number)
    bench.examine(again)
    newest = len(bench.sources) - 1
    if any(span.version != newest for episode in again if episode.ledger for span in episode.ledger.spans):
        bench.bad(f"fault {number}: labelled with a version before {newest}")


async def _arrives(bench: Bench, number: int, rng: np.random.Generator) -> None:
    """New weights are loaded while a batch is being drawn, and the episodes go on with them."""
    fresh = bench.next_weights()
    playing = await bench.play_until(number, int(rng.integers(1, 20)))
    await bench.load(fresh)
    bench.tally.injected += 1
    episodes = await playing
    bench.examine(episodes)
    versions = {span.version for episode in episodes if episode.ledger for span in episode.ledger.spans}
    newest = len(bench.sources) - 1
    # A reply that was begun is begun again, so of the version before there is nothing where none was finished.
    if newest not in versions or not versions <= {newest - 1, newest}:
        bench.bad(f"fault {number}: versions {sorted(versions)} instead of the last two")


def run(count: int, seed: int, folder: Path) -> Tally:
    bench = Bench(seed)
    for number in range(count):
        rng = generator("interrupt weights", seed, number)
        asyncio.run((_load_fails, _cancelled, _arrives)[number % 3](bench, number, rng))
    tally = bench.tally
    tally.survived = tally.injected - min(tally.injected, tally.lost + tally.misattributed)
    return tally
