"""A policy that is shown experience: a wrapper of any policy, which adds text to the instructions of each episode."""

from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.agents.evaluation.replay_policy import Replay
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking, retrieval_of
from manyturn.agents.experience.retrieval.selection import Selector, prompt_of
from manyturn.agents.experience.store import Experience, ExperienceEntry
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Act, Counting, Onlooker, Player, Policy
from manyturn.agents.play.role_policy import Cast
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class Experienced:
    """Plays as another policy does, which reads entries of an experience after the environment's instructions.

    Args:
        policy: plays.
        experience: the entries.
        ranking: finds those that resemble a task. Default: as the experience says.

    Attributes:
        experience: the same, for summaries.
        ranking: the same; its vectors have what they took.

    Raises:
        ValueError: the policy reads no instructions, so that experience could not reach it.
    """

    def __init__(self, policy: Policy, experience: Experience, ranking: Ranking | None = None):
        if fault := deafness(policy):
            raise ValueError(fault)
        self.policy, self.experience = policy, experience
        self.ranking = ranking or RETRIEVALS.apply(retrieval_of(experience.retrieval))
        self.name = ", ".join(part for part in (policy.name, experience.label, self.ranking.name) if part)
        self._selector = Selector(experience, self.ranking)

    def __getattr__(self, name: str) -> Any:
        """Any other attribute, such as sampling and prices: that of the inner policy."""
        if name == "policy":  # while an object is copied it has no attributes yet
            raise AttributeError(name)
        return getattr(self.policy, name)

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        if self._selector.reads_observation:
            return _ReadsFirst(self, key, instructions)
        return self._begin(key, instructions, self._selector.lessons)

    async def begin(self, key: EpisodeKey, instructions: str, observation: str) -> Player:
        """Begin an episode with the entries for a task and its first observation. Raises what a search raises."""
        return self._begin(key, instructions, await self._selector.chosen(key.task, observation))

    def _begin(self, key: EpisodeKey, instructions: str, entries: Sequence[ExperienceEntry]) -> Player:
        words = prompt_of(entries)
        return self.policy.player(key, "\n\n".join(part for part in (instructions, words) if part))


def deafness(policy: Policy) -> str | None:
    """The reason for which experience has no effect on a policy, with the fix; None if it has one."""
    if isinstance(policy, Scripted | Replay):
        return f"experience has no effect on {policy.name}, which reads no instructions: leave it out"
    if not any(map(_reads_instructions, policy.members.values() if isinstance(policy, Cast) else [policy])):
        return (
            "experience has no effect on this policy: it is a part of the instructions, which the policy is not "
            "given. Set agent.instructions to true; a run is evaluated as it was trained, so train it with them"
        )
    return None


def _reads_instructions(policy: Policy) -> bool:
    config = getattr(policy, "config", None)
    return not isinstance(policy, Scripted) and (not isinstance(config, AgentConfig) or config.instructions)


class _ReadsFirst:
    """A player that begins once it has read the first observation, by which its entries are chosen."""

    def __init__(self, policy: Experienced, key: EpisodeKey, instructions: str):
        self._policy, self._key, self._instructions = policy, key, instructions
        self._player: Player | None = None

    @property
    def ledger(self) -> Ledger | None:
        return None if self._player is None else self._player.ledger

    @property
    def measures(self) -> Mapping[str, float]:
        return self._player.measures if isinstance(self._player, Counting) else {}

    async def act(self, step: Answer, seat: Seat) -> Act:
        if self._player is None:
            self._player = await self._policy.begin(self._key, self._instructions, step.observation)
        return await self._player.act(step, seat)

    def look(self, step: Answer) -> None:
        if isinstance(self._player, Onlooker):
            self._player.look(step)

    def leave(self) -> None:
        if self._player is not None:
            self._player.leave()
