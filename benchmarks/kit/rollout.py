"""Rollouts to be measured: episodes with an engine attached, and the same requests replayed without environments."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.kit import rollout_world as world
from manyturn.agents.engine.engine import Engine, Reply, Sampling
from manyturn.agents.engine.weight_source import Weights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

ENV = f"{world.__file__}:Errand"
AGENT = AgentConfig(instructions=False, max_context=1024)
_SAMPLING = Sampling(max_tokens=40)
_ONCE = Patience(attempts=1, error_share=0.0)


@dataclass(frozen=True)
class Size:
    """Size of a measurement.

    Attributes:
        episodes: in all.
        side_by_side: episodes at once.
        shape: width and layers of the decoder.
    """

    episodes: int
    side_by_side: int
    shape: tuple[int, int]


class Noting(Engine):
    """Passes requests on to an engine, and notes them with their replies."""

    def __init__(self, engine: Engine):
        self.vocabulary, self.version, self.capabilities = engine.vocabulary, engine.version, engine.capabilities
        self._engine = engine
        self.noted: dict[EpisodeKey, list[tuple[list[int], Reply]]] = {}
        self.open, self.close = engine.open, engine.close

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        reply = await self._engine.generate(key, turn, prompt_ids, sampling)
        self.noted.setdefault(key, []).append((list(prompt_ids), reply))
        return reply

    async def load(self, weights: Weights, version: int) -> None:
        await self._engine.load(weights, version)


async def attached(
    made: LanguageModel,
    engine: Engine,
    size: Size,
    seconds: float = 0.0,
    workers: int = 0,
    on_episode: Callable[[Episode], None] | None = None,
) -> float:
    """Seconds to play the episodes."""
    agent = Agent(AGENT, made.template, engine, _SAMPLING)
    async with open_seats(ENV, {"seconds": seconds}, limit=size.side_by_side, workers=workers) as seats:
        tasks = seats.tasks("train")[: size.episodes]
        plan = [(task, EpisodeKey(0, "rollout", task.id, 0)) for task in tasks]
        began = time.perf_counter()
        await gather(seats, agent, plan, max_turns=world.MOST, patience=_ONCE, on_episode=on_episode)
        return time.perf_counter() - began


async def replayed(
    engine: Engine, noted: dict[EpisodeKey, list[tuple[list[int], Reply]]], side_by_side: int, exact: bool = True
) -> float:
    """Seconds of the same requests, each asked as soon as the episode's reply before it is there.

    Args:
        exact: whether the replies must be the same; rounding in bfloat16 draws other tokens now and then.
    """
    waiting = iter(noted.items())

    async def lane() -> None:
        for key, turns in waiting:
            engine.open(key)
            for turn, (prompt, expected) in enumerate(turns):
                reply = await engine.generate(key, turn, prompt, _SAMPLING)
                if exact and reply.ids != expected.ids:
                    raise RuntimeError(f"{key}: the engine drew something else at turn {turn}")
            engine.close(key)

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(side_by_side)))
    return time.perf_counter() - began
