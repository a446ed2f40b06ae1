"""Many episodes open at once in one process: the cheapest policy, and a count of what is open."""

import asyncio
import time

from benchmarks.kit.memory import peak_mb
from benchmarks.scale import vector_envs
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Act, Player, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat, Seats

CORRIDOR = f"{vector_envs.__file__}:Corridor"
CROWD, FEW = 10_000, 512  # episodes

Figures = dict[str, float]


class SaysOneThing:
    """The cheapest policy."""

    name = "says one thing"
    ledger: Ledger | None = None

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return self

    async def act(self, step: Answer, seat: Seat) -> Act:
        return Act(vector_envs.ACTION, vector_envs.ACTION)

    def leave(self) -> None:
        """Nothing is kept."""


class TakingTurns:
    """A policy that lets every other episode have a turn before its own, and counts those that are open.

    Args:
        policy: the policy that plays.
        size: episodes that shall be open at once.

    Attributes:
        most: episodes that were open at once, each reset and not ended.
        idle_mb: memory of the process at the moment when that many were, before any took a turn.
    """

    def __init__(self, policy: Policy, size: int):
        self.name, self.policy, self.size = policy.name, policy, size
        self.open = self.most = 0
        self.idle_mb = 0.0

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _Turnwise(self, self.policy.player(key, instructions))

    def began(self) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open == self.size and not self.idle_mb:
            self.idle_mb = vector_envs.memory_mb()


class _Turnwise:
    def __init__(self, count: TakingTurns, player: Player):
        self._count, self._player, self._began = count, player, False

    @property
    def ledger(self) -> Ledger | None:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        if not self._began:
            self._began = True
            self._count.began()
        await asyncio.sleep(0)
        return await self._player.act(step, seat)

    def leave(self) -> None:
        self._count.open -= self._began
        self._player.leave()


async def side_by_side(opened: Seats, policy: Policy, count: int, rounds: int) -> Figures:
    """Whole episodes, ``count`` at a time; the environments are made in the first round and used again after it."""
    before, turns, spent = vector_envs.memory_mb(), 0, 0.0
    counted = TakingTurns(policy, count)
    async with opened as seats:
        for number in range(rounds):
            tasks = seats.tasks("train")[:count]
            plan = [(task, EpisodeKey(number, "scale", task.id, 0)) for task in tasks]
            began = time.perf_counter()
            episodes = await gather(seats, counted, plan, max_turns=100)
            spent += time.perf_counter() - began
            turns += sum(len(episode.turns) for episode in episodes)
            if any(episode.ending.is_error for episode in episodes):
                raise RuntimeError(f"{opened.name}: an episode ended in an error")
    if counted.most != count or counted.open:
        raise RuntimeError(f"{counted.most} of {count} episodes were open at once, {counted.open} never ended")
    return {
        "open_at_once": counted.most,
        "episodes_per_s": rounds * count / spent,
        "steps_per_s": turns / spent,
        "idle_kb_each": (counted.idle_mb - before) / count * 1000,
        "peak_mb": peak_mb(),
    }
