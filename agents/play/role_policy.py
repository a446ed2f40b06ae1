"""Several policies in one episode: each plays the roles that are its own."""

from collections.abc import Mapping
from dataclasses import replace

from manyturn.agents.play.agent import Agent, Demonstrator
from manyturn.agents.play.episode import Act, Onlooker, Player
from manyturn.agents.play.scripted_policy import Scripted
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class Cast:
    """Policies by role. Agents of one policy share its weights; each remembers only its own observations and replies.

    Args:
        roles: role -> policy. Engines of different policies must have a ``BatchBarrier``.
    """

    def __init__(self, roles: Mapping[str, Agent | Demonstrator | Scripted]):
        self.roles = dict(roles)
        self.name = ", ".join(f"{role}: {policy.name}" for role, policy in self.roles.items())

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
            return replace(act, usage=Usage(0, 0, cut=False))
        return act

    def look(self, step: Answer) -> None:
        player = self._players[id(self._roles[step.role])]
        if isinstance(player, Onlooker):
            player.look(step)

    def leave(self) -> None:
        for player in self._players.values():
            player.leave()
