"""Options of the order of training: whether episodes are played while a step is learnt from."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.play.order.schedule import Consume


class OrderConfig(Options):
    kind: Literal["synchronous", "asynchronous"] = "synchronous"
    """Play a step's episodes and then learn from them, or play those of later steps meanwhile."""
    staleness: Annotated[int, OnlyWith("kind", "asynchronous", may_wait=True)] = Field(default=4, ge=1)
    """Most steps between the weights that an episode begins with and those that learn from it. An episode that would be
    older begins later."""
    consume: Annotated[Consume, OnlyWith("kind", "asynchronous", may_wait=True)] = "drawn"
    """What a step learns from: the groups that were drawn for it (drawn); any that are complete, where one that would
    be too old is waited for (any); the same, where such a group is dropped, which favours short episodes (drop). The
    metrics dropped and length_bias say what any and drop have cost."""

    @property
    def is_asynchronous(self) -> bool:
        return self.kind == "asynchronous"

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """Defaults that fit a run in this order; see ``ModelConfig.defaults``.

        The ratio of an update is over the log-probabilities of the weights that drew, unless a correction weighs them.
        """
        corrects = run.objective.correction is not None or run.objective.reject
        return {"learner": {"old_logprobs": "engine"}} if self.is_asynchronous and not corrects else {}

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if not self.is_asynchronous:
            return None
        return _refuse_play(run.rollout) or _refuse_ratio(run) or _refuse_alarm(run.learner)


_LEAVE = "or leave order.kind = 'asynchronous' out"


def _refuse_play(rollout: Any) -> str | None:
    """Refuse what depends on how other episodes of the step ended, and so cannot be drawn ahead."""
    if rollout.rounds > 1:
        return (
            f"rollout.rounds = {rollout.rounds} plays groups for which the step's others have to end first, while "
            f"order.kind = 'asynchronous' plays on: leave rounds out, {_LEAVE}"
        )
    if rollout.branching is not None:
        return (
            "rollout.branching forks off episodes that have ended with the weights of now, while order.kind = "
            f"'asynchronous' goes on to other weights: leave branching out, {_LEAVE}"
        )
    if rollout.guidance is not None:
        return (
            "rollout.guidance has later episodes of a group read a text about earlier ones of the same weights, while "
            f"order.kind = 'asynchronous' goes on to other weights: leave guidance out, {_LEAVE}"
        )
    return None


def _refuse_ratio(run: Any) -> str | None:
    """A loss that takes what older weights drew for what the present ones would have drawn."""
    corrected = run.objective.correction is not None
    if run.learner.old_logprobs == "learner" and not corrected:
        return (
            "learner.old_logprobs = 'learner' takes episodes for the present policy's, and order.kind = 'asynchronous' "
            "learns from those of earlier weights: set it to 'engine', or give objective.correction"
        )
    if run.objective.needs_fresh_samples and not corrected:
        return (
            f"{run.objective.name} has no ratio for what earlier weights drew, from which order.kind = 'asynchronous' "
            "learns: take an objective with one, such as clip, or give objective.correction"
        )
    return None


def _refuse_alarm(learner: Any) -> str | None:
    if learner.engine_alarm == "note":
        return (
            "learner.engine_alarm has no effect with order.kind = 'asynchronous', where engine and learner differ "
            f"because their weights do: leave it out, {_LEAVE}"
        )
    return None
