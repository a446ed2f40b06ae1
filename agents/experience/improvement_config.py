"""Options of an improvement: the method, its rounds, the tasks that it attempts, and the panel that measures it."""

from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.agents.experience.budget import BudgetConfig
from manyturn.agents.experience.method import METHODS
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS
from manyturn.agents.experience.retrieval.rankings.bm25 import Bm25Config
from manyturn.envs.contract.options.options import Options


class PoolConfig(Options):
    """The tasks that are attempted, from which experience comes."""

    split: str = "train"
    """The split that they are taken from."""
    limit: int = Field(default=16, ge=1)
    """Most tasks; ``--tasks`` chooses others than the first."""
    batch: int | None = Field(default=None, ge=1)
    """Tasks of a round, drawn without repetition until all had their turn. Default: all of them in each round."""


class ValidationConfig(Options):
    """The held-out panel on which each round's experience is measured; none of it enters the experience."""

    split: str = "validation"
    """The split that it is taken from."""
    limit: int = Field(default=32, ge=1)
    """Tasks on the panel, at most."""
    repeats: int = Field(default=1, ge=1)
    """Episodes of each task."""
    decoding: Literal["both", "sampled", "greedy"] = "both"
    """Measure the policy as it samples, with temperature 0, or both, where it has a temperature."""


class ImprovementConfig(Options):
    """Options of ``manyturn improve``."""

    method: Annotated[Any, METHODS.field]
    """Method that turns attempts into experience."""
    rounds: int = Field(default=3, ge=1)
    """Rounds of attempts; more of them continue an improvement that has ended."""
    seed: int = 0
    """All randomness derives from it."""
    length: int = Field(default=512, ge=16)
    """Longest text of a writer that is a model in this process, in tokens; an endpoint has sampling.max_tokens."""
    retrieval: Annotated[Any, RETRIEVALS.field] = Bm25Config()
    """Search for entries about single tasks that fit a task: bm25, by words, or embedding, by vectors of a model."""
    pool: PoolConfig = PoolConfig()
    validation: ValidationConfig = ValidationConfig()
    budget: BudgetConfig = BudgetConfig()
