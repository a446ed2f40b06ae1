"""Play of the environment's expert in the world of a group: its own episode, or its word on each turn of an attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.agents.play.episode import Act, Cut, Episode, LimitReached, Player, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat
from manyturn.trainers.play.guidance.guidance import Workshop


async def expert_episodes(workshop: Workshop, sources: Sequence[Episode]) -> dict[EpisodeKey, Episode]:
    """Key of each attempt -> the expert's episode in its world, which a group shares; only those that succeed."""
    worlds = {source.key._replace(member=0): source for source in sources}
    played = await _play(workshop, SCRIPTS["expert"], list(worlds.values()))
    by_world = {key: episode for key, episode in zip(worlds, played, strict=True) if episode.success}
    return {source.key: by_world[world] for source in sources if (world := source.key._replace(member=0)) in by_world}


async def expert_words(workshop: Workshop, sources: Sequence[Episode]) -> dict[EpisodeKey, list[str]]:
    """Key of each attempt -> what the expert would have done at each of its turns, as far as it could be asked."""
    review = _Review({episode.key: episode for episode in sources})
    await _play(workshop, review, sources)
    return review.words


async def _play(workshop: Workshop, policy: Policy, sources: Sequence[Episode]) -> list[Episode]:
    """Play in the worlds of attempts, each once; one that ends in an error costs its text and nothing else."""
    plan = list({episode.key: (episode.task, episode.key) for episode in sources}.values())
    if not plan:
        return []
    patience = replace(workshop.patience, error_share=1.0)
    return await gather(workshop.seats, policy, plan, max_turns=workshop.max_turns, patience=patience)


@dataclass
class _Review:
    """A policy that repeats attempts, and asks the expert before each turn."""

    attempts: Mapping[EpisodeKey, Episode]
    name: str = "review"

    def __post_init__(self) -> None:
        self.words = dict[EpisodeKey, list[str]]()

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        self.words[key] = []
        return _ReviewPlayer(self.attempts[key], self.words[key])


class _ReviewPlayer:
    def __init__(self, attempt: Episode, words: list[str]):
        self._attempt, self._words = attempt, words
        self.ledger = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        if len(self._words) == len(self._attempt.turns):  # a limit of the policy's had ended it
            raise LimitReached(f"member {self._attempt.key.member} had no further turn")
        turn = self._attempt.turns[len(self._words)]
        self._words.append(await seat.expert())
        return Act(turn.reply, turn.action, cut=Cut(0) if turn.fault == "cut" else None)

    def leave(self) -> None:
        """Nothing is kept."""
