"""Forks: an episode that says again what another one said, and from some turn on goes a way of its own.

Nothing of an environment or an engine is copied. An episode is a function of its task, the reset's seed, which a group
shares, and its actions: repeating the actions leads to where the other one was. An engine takes it for an episode like
any other, which it is: open from its first turn, with a key of its own, and with noise of its own once it asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from manyturn.agents.engine.engine import Reply
from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.episode import Act, Ending, Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import Seat


@dataclass(frozen=True, slots=True)
class Fork:
    """The point at which an episode leaves another one.

    Attributes:
        parent: an episode of the same task and group that did not end in an error.
        turn: the first turn that is not repeated; the parent has it too.
    """

    parent: Episode
    turn: int

    def settle(self, branch: Episode) -> None:
        """Make an error of a branch that ended before its parent did; its player could not see that."""
        if not branch.ending.is_error and len(branch.turns) <= self.turn:
            branch.ending, branch.cause, branch.success = Ending.ENV_ERROR, self.parted(len(branch.turns)), None

    def parted(self, turn: int) -> str:
        """The text of the error where the same actions led elsewhere."""
        return (
            f"turn {turn} of {self.parent.task.id} differs from what member {self.parent.key.member} saw after the "
            "same actions, so the environment is not a function of task, seed and actions: leave rollout.branching "
            "out, or fix the environment (manyturn check tests this)"
        )


class Forking:
    """The agent, whose episodes of certain keys are branches of others.

    Args:
        agent: plays the episodes, and the branches from their forks on.
        forks: key of each branch -> where it forks.
    """

    def __init__(self, agent: Agent, forks: Mapping[EpisodeKey, Fork]):
        self.agent, self.forks, self.name = agent, forks, agent.name

    def player(self, key: EpisodeKey, instructions: str) -> "AgentPlayer | BranchPlayer":
        player, fork = self.agent.player(key, instructions), self.forks.get(key)
        return player if fork is None else BranchPlayer(player, fork)


class BranchPlayer:
    """The agent within one branch. Raises EnvError where the environment answers the same actions otherwise."""

    def __init__(self, player: AgentPlayer, fork: Fork):
        self._player, self._fork = player, fork

    @property
    def ledger(self) -> Ledger:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        turn, fork = len(self.ledger.spans), self._fork
        if turn > fork.turn:
            return await self._player.act(step, seat)
        coming, parent, original = self._player.next(step), fork.parent.ledger, fork.parent.turns[turn]
        assert parent is not None, "an agent's episodes have a ledger"
        prompt, shown = coming.prompt, step.observation if coming.shown is None else coming.shown
        if (prompt, shown, step.anchor) != (parent.prompt(turn), original.observation, original.anchor):
            raise EnvError(fork.parted(turn))
        if turn == fork.turn:
            return await self._player.act(step, seat)
        logprobs, entropies = parent.reply_logprobs(turn).tolist(), parent.reply_entropies(turn).tolist()
        finish = "length" if original.usage is not None and original.usage.cut else "stop"
        again = Reply(parent.reply(turn), logprobs, finish, parent.spans[turn].version, entropies)
        return self._player.take_down(step, prompt, again, self._player.choices(step, seat))

    def look(self, step: Answer) -> None:
        self._player.look(step)

    def leave(self) -> None:
        self._player.leave()
