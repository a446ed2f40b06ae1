"""Options of the heads that predict values next to the policy."""

from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts

_POLICY = OnlyWith("body", "policy", may_wait=True)
_OWN = OnlyWith("body", "own", may_wait=True)
_GRADIENT = OnlyWith("fit", "gradient")
_SOLVED = OnlyWith("fit", "least_squares")


class OwnCriticConfig(Options):
    """A critic of its own: a copy of the policy as the warm-up left it, with a layer or two on top."""

    lr: float | None = Field(default=None, gt=0)
    """Learning rate of all its weights, constant; unset: 5 times learner.lr."""
    hidden: int = Field(default=0, ge=0)
    """Width of a layer in between; 0 makes what is on top linear."""
    clip: float | None = Field(default=0.5, gt=0)
    """How far a value may move in a step before its loss stops falling; unset: as far as it likes."""


class ExplorationConfig(Options):
    """Training of an estimator before reinforcement: the warmed-up policy explores, and the outcomes are learnt."""

    target: Literal["states", "sum"] = "states"
    """Prediction that learns the outcome: that of the state before each reply, so that a turn contributes what it
    changes, or the sum of an episode's contributions, as published."""
    episodes: int = Field(default=512, ge=2)
    """Episodes of exploration, in groups as steps have them. They count in the run's budget."""
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of their tasks on which the estimate is measured, and not trained."""
    trains: Literal["all", "layers"] = "all"
    """Whether the copy of the policy is trained along, or the layers on top alone. With learner.lora_rank the copy's
    adapters are trained, and nothing else of it."""
    hidden: int = Field(default=64, ge=0)
    """Width of the layer in between; 0 makes what is on top linear."""
    lr: float | None = Field(default=None, gt=0)
    """Learning rate, constant; unset: twice learner.lr."""
    batch: int = Field(default=16, ge=1)
    """Episodes in an update."""
    passes: int = Field(default=20, ge=1)
    """Most passes over the episodes. The weights with the least held-out error are kept."""
    patience: int = Field(default=4, ge=1)
    """Passes without a smaller held-out error after which it ends."""
    unexplained: Literal["go_on", "stop"] = "go_on"
    """End of an exploration after which the estimate explains less than ``progress.least_explained``: the run goes on
    and pays the outcome at the last turn until it explains more, or it stops."""


class PretrainingConfig(Options):
    """Training of a critic before reinforcement: the warmed-up policy plays, and what it earned is learnt."""

    episodes: int = Field(default=256, ge=1)
    """Episodes that are played for it, in groups as steps have them. They count in the run's budget."""
    passes: int = Field(default=5, ge=1)
    """Passes over them, in minibatches of learner.minibatch; a least-squares fit gives them so many times the weight.
    """


class HeadConfig(Options):
    """A layer, or two, on the policy's last hidden states, or on those of a copy."""

    body: Literal["policy", "own"] = "policy"
    """Whose hidden states are read: the policy's, or those of a model of its own."""
    fit: Annotated[Literal["gradient", "least_squares"], _POLICY] = "gradient"
    """Gradient steps along with the policy's, or the linear solution over all that was seen."""
    lr: Annotated[float, _GRADIENT, _POLICY] = Field(default=1e-3, gt=0)
    """Learning rate of the head's own AdamW."""
    hidden: Annotated[int, _GRADIENT, _POLICY] = Field(default=0, ge=0)
    """Width of a layer in between; 0 makes the head linear."""
    ridge: Annotated[float, _SOLVED, _POLICY] = Field(default=10.0, gt=0)
    """Weight of the squared weights."""
    keep: Annotated[float, _SOLVED, _POLICY] = Field(default=0.9, gt=0, le=1)
    """What earlier rows weigh after a step, as a share of what they weighed."""

    @property
    def is_fixed(self) -> bool:
        """True if it learns before reinforcement and not after."""
        return False


class ValueHeadConfig(HeadConfig):
    """The critic: what is still to come, before each token."""

    clip: Annotated[float | None, _GRADIENT, _POLICY] = Field(default=0.5, gt=0)
    """How far a value may move in a step before its loss stops falling; unset: as far as it likes."""
    into_policy: Annotated[float, _GRADIENT, _POLICY] = Field(default=0.0, ge=0)
    """Weight of the value loss in the policy's own gradient; 0: the head reads the policy and does not change it."""
    own: Annotated[OwnCriticConfig, _OWN] = OwnCriticConfig()
    """A critic with a body of its own, which learns along in all its weights; with learner.lora_rank, in adapters."""
    pretraining: PretrainingConfig | None = None
    """How the critic is trained before the first step; unset: it begins at 0."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.pretraining is None:
            return None
        if run.progress is not None and run.progress.is_fixed:
            return (
                "value.pretraining learns what an estimator pays, which is trained on the same episodes and not there "
                "yet: leave value.pretraining out, or set progress.body = 'policy'"
            )
        if self.pretraining.episodes < run.rollout.group:
            return (
                f"value.pretraining.episodes = {self.pretraining.episodes} are less than a group of "
                f"{run.rollout.group}: give {run.rollout.group} or more"
            )
        return None


class ImplicitConfig(Options):
    """A second policy, which learns which episodes did better: as it is likelier to say a turn, it rewards it."""

    beta: float = Field(default=0.05, gt=0)
    """Reward of a turn for each nat by which the second policy is likelier to have said it."""
    lr: float | None = Field(default=None, gt=0)
    """Learning rate of its AdamW, constant; unset: twice learner.lr."""

    @property
    def is_fixed(self) -> bool:
        """True: it does not learn in the policy's own updates."""
        return True


class ProgressHeadConfig(HeadConfig):
    """The progress estimator: what each turn contributes to the outcome.

    With a body of its own it is trained on exploration before reinforcement, and then fixed.
    """

    trust: Literal["explained", "full"] = "explained"
    """Contributions as the share of the outcome's variance that they explain in the step scales them, or as they are
    predicted."""
    least_explained: float = Field(default=0.1, ge=0, lt=1)
    """Share below which they count as 0 with trust = "explained"."""
    exploration: Annotated[ExplorationConfig, _OWN] = ExplorationConfig()
    """How an estimator with a body of its own is trained."""

    @property
    def is_fixed(self) -> bool:
        return self.body == "own"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        least, episodes = 2 * run.rollout.group, self.exploration.episodes
        if self.body == "policy" or episodes >= least:
            return None
        return (
            f"progress.exploration.episodes = {episodes} are of one task in groups of {run.rollout.group}, and none is "
            f"left to measure the estimate on: give {least} or more"
        )
