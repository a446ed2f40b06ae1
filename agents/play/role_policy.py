"""Several policies in one episode: each plays the roles that are its own.

Only what a policy in training says stands in the ledger. Turns of all others stand there as replies of no tokens.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.play.agent import Agent
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Act, LimitReached, Onlooker, Player, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class Partner:
    """A policy that plays roles and does not learn.

    Its limits and failures are none of those that learn: each is an error of the episode, under the role's name.

    Args:
        policy: a model, an endpoint, a policy in Python.
    """

    def __init__(self, policy: Policy):
        self.policy, self.name = policy, policy.name

    def join(self, key: EpisodeKey, instructions: str, ledger: Ledger) -> "PartnerPlayer":
        """Begin an episode in which other policies play too.

        Args:
            ledger: of the episode, which counts its turns.
        """
        return PartnerPlayer(self.policy, key, instructions, ledger)


class PartnerPlayer:
    """The policy within one episode. A model has a ledger of its own, which ends with the episode."""

    def __init__(self, policy: Policy, key: EpisodeKey, instructions: str, episode: Ledger):
        self._episode, self._own = episode, Ledger()
        self._player = (
            policy.join(key, instructions, self._own) if isinstance(policy, Agent) else policy.player(key, instructions)
        )
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        # The sampling noise of a turn is that of its number, which must be no other policy's in the episode.
        while len(self._own.spans) < len(self._episode.spans):
            self._own.record([], [], [], version=0)
        try:
            act = await self._player.act(step, seat)
        except LimitReached as limit:
            raise EngineRefused(f"role {step.role}: {limit}") from limit
        except EngineError as error:
            message = str(error).replace("--endpoint.", f"--roles.{step.role}.endpoint.")
            failed = type(error)(f"role {step.role}: {message}")
            failed.usage = error.usage
            raise failed from error
        if act.cut is not None and act.cut.ends:
            refused = EngineRefused(
                f"role {step.role}: agent.cut = 'end', and its reply was cut at {act.cut.tokens} tokens: give "
                f"--roles.{step.role}.sampling.max-tokens more"
            )
            refused.usage = act.usage
            raise refused
        return replace(act, pieces=())

    def leave(self) -> None:
        self._player.leave()


class Cast:
    """Policies by role. Agents of one policy share its weights; each remembers only its own observations and replies.

    Args:
        roles: role -> policy. Engines of different policies must have a ``BatchBarrier``.

    Attributes:
        members: role -> policy as it is by itself, whether or not it learns.
        concurrency: most episodes that may be open together; None without a limit.
        priced: True if the cost of replies in any role is to be counted.
        secrets: values that no file may hold.
    """

    def __init__(self, roles: Mapping[str, Agent | Demonstrator | Scripted | Partner]):
        self.roles = dict(roles)
        self.name = ", ".join(f"{role}: {policy.name}" for role, policy in self.roles.items())
        self.members: dict[str, Any] = {r: p.policy if isinstance(p, Partner) else p for r, p in self.roles.items()}
        members = self.members.values()
        limits = [getattr(p.policy, "concurrency", None) for p in self.roles.values() if isinstance(p, Partner)]
        self.concurrency = min((limit for limit in limits if limit is not None), default=None)
        self.priced = any(getattr(policy, "priced", False) for policy in members)
        self.secrets = tuple(secret for policy in members for secret in getattr(policy, "secrets", ()))

    def player(self, key: EpisodeKey, instructions: str) -> "CastPlayer":
        return CastPlayer(self, key, instructions)


class CastPlayer:
    """A cast within one episode. Turns of policies without tokens stand in the ledger as replies of none."""

    def __init__(self, cast: Cast, key: EpisodeKey, instructions: str):
        self.ledger = Ledger()
        self._roles = cast.roles
        self._players: dict[int, Player] = {}
        for policy in cast.roles.values():
            if id(policy) not in self._players:
                scripted = isinstance(policy, Scripted)
                self._players[id(policy)] = (
                    policy.player(key, instructions) if scripted else policy.join(key, instructions, self.ledger)
                )

    async def act(self, step: Answer, seat: Seat) -> Act:
        player = self._players[id(self._roles[step.role])]
        act = await player.act(step, seat)
        if player.ledger is None:
            self.ledger.record([], [], [], version=0, role=step.role)
            return act if act.usage is not None else replace(act, usage=Usage(0, 0, cut=False))
        return act

    def look(self, step: Answer) -> None:
        player = self._players[id(self._roles[step.role])]
        if isinstance(player, Onlooker):
            player.look(step)

    def leave(self) -> None:
        for player in self._players.values():
            player.leave()
