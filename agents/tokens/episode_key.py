"""The identity of an episode, from which all its randomness comes."""

from typing import NamedTuple

from manyturn.envs.contract.random_keys import seed_of


class EpisodeKey(NamedTuple):
    """Names one episode; all of its randomness is derived from these four values.

    Attributes:
        seed: the run's seed.
        stage: what the episode is for, such as ``"train/12"`` or ``"evaluate"``.
        task: the task's id.
        member: 0..G-1, the place in the group of the task.
    """

    seed: int
    stage: str
    task: str
    member: int

    def reset_seed(self) -> int:
        """The environment's seed: shared by a group, whose members must meet the same world."""
        return seed_of("reset", self.seed, self.stage, self.task) >> 32

    def noise_seed(self, turn: int) -> int:
        """The seed of the sampling noise of one turn."""
        return seed_of("noise", *self, turn)
