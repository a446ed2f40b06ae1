"""A policy whose replies are counted as they come, so that usage of lost episodes is known too."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.play.episode import Act, Counting, Player, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import NOTHING, Spent, Usage
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


@dataclass
class Meter:
    """Usage of all replies so far, those of lost episodes included."""

    spent: Spent = NOTHING


class Metered:
    """Plays as another policy does, and counts what its replies take."""

    def __init__(self, policy: Policy, meter: Meter):
        self.name, self._policy, self._meter = policy.name, policy, meter

        self.concurrency, self.blocks = getattr(policy, "concurrency", None), getattr(policy, "blocks", False)

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _MeteredPlayer(self._meter, self._policy.player(key, instructions), blocks=self.blocks)


class _MeteredPlayer:
    def __init__(self, meter: Meter, player: Player, *, blocks: bool):
        self._meter, self._player, self._blocks = meter, player, blocks

    @property
    def ledger(self) -> Ledger | None:
        return self._player.ledger

    @property
    def measures(self) -> Mapping[str, float]:
        return self._player.measures if isinstance(self._player, Counting) else {}

    async def act(self, step: Answer, seat: Seat) -> Act:
        if self._blocks:
            await asyncio.sleep(0)  # a signal is heard between turns, and what shows the progress goes on
        try:
            act = await self._player.act(step, seat)
        except EngineError as error:
            self._count(error.usage)
            raise
        self._count(act.usage)
        return act

    def leave(self) -> None:
        self._player.leave()

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self._meter.spent = self._meter.spent.plus(usage)
