"""Options of an audit: what is played, how exact the truth has to be, and what it may cost."""

from typing import Literal

from pydantic import Field

from manyturn.envs.contract.options.options import Options


class AuditConfig(Options):
    """Options of what an audit plays, and of where it stops."""

    split: str = "train"
    """Split that the tasks are from."""
    tasks: int = Field(default=24, ge=2)
    """Tasks, from the beginning of the split; intervals are over them."""
    group: int = Field(default=8, ge=2)
    """Episodes of each task, which methods compare with each other."""
    seed: int = 0
    """All randomness derives from it."""
    reliability: float = Field(default=0.8, gt=0, lt=1)
    """Continuations are added until so much of the variance of the estimated effects is true."""
    pilot: int = Field(default=16, ge=4)
    """Continuations of every situation before it is known which need more."""
    most: int = Field(default=4096, ge=4)
    """Continuations of one situation at most."""
    critic: int = Field(default=32, ge=2)
    """Continuations of every situation that a critic's values are the mean of; they are no part of the truth."""
    siblings: int = Field(default=4, ge=1)
    """Of these, how many are branches of each turn for methods that compare the branches of one situation."""
    steps: int = Field(default=2_000_000, ge=1)
    """Steps of environments that continuations may take, all together. Four continuations of every situation, and two
    for a critic, are played in any case."""
    seconds: float | None = Field(default=None, gt=0)
    """Seconds after which no further task is begun; the result then depends on the machine."""
    max_turns: int = Field(default=100, ge=1)
    """Turns after which an episode is cut off, where the environment has no limit of its own."""
    reward: Literal["return", "outcome"] = "return"
    """Reward that the true effects are of: all, or only the outcome at an episode's end. Methods see all in any case,
    so that the second says whether rewards of turns mislead them."""
    chance: Literal["redrawn", "as_played"] = "redrawn"
    """Whether what is random inside an environment is drawn again in each continuation, so that luck is no skill, or
    happens as it did in the episode."""
