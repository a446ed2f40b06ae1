"""Configuration of credit: the functions that give credit to turns, and the combinations that are refused."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from manyturn.envs.contract.env.roles import own_parts
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import UNFINISHED, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS, StageConfig


class CreditConfig(Options):
    """The functions that give credit to turns."""

    rewards: tuple[Annotated[Any, REWARDS.field], ...] = ()
    """Changes to the rewards, in order."""
    advantage: Annotated[Any, ADVANTAGES.field]
    """What a turn is compared with."""
    modulation: tuple[Annotated[Any, MODULATIONS.field], ...] = ()
    """Weights on the advantage, in order."""
    truncated: Literal["as_ended", "left_out"] = "as_ended"
    """What becomes of episodes that a limit of turns or tokens cut off: they are learnt from as they ended, or others
    are compared with them and they themselves are left out of the update."""

    @property
    def needs(self) -> dict[str, str]:
        """Column -> the stage that cannot work without it."""
        return {column: stage.name for stage in self._stages for column in sorted(stage.needs)}

    @property
    def uses(self) -> dict[str, str]:
        """Column -> the stage that takes it into account where it is there."""
        return {column: stage.name for stage in self._stages for column in stage.uses}

    @property
    def _stages(self) -> tuple[StageConfig, ...]:
        return (*self.rewards, self.advantage, *self.modulation)

    @field_validator("rewards", "advantage", "modulation", mode="before")
    @classmethod
    def _is_no_regulariser(cls, value: Any) -> Any:
        """EPO is a part of the loss: of trainers that take our credit, few have a place for it there."""
        if any(_name(objective) == "epo" for objective in (value if isinstance(value, list | tuple) else [value])):
            raise ValueError(
                "epo is a term of the loss, no credit: set objective.epo in a run of ours, or give epo to TRL's "
                "CreditGRPOTrainer; verl, SkyRL, prime-rl, rLLM and TRL's asynchronous trainer have no place for it"
            )
        return value

    @field_validator("rewards", "modulation", mode="before")
    @classmethod
    def _is_list(cls, value: Any, info: ValidationInfo) -> Any:
        """Options of one stage have no path: a stage is written whole."""
        if isinstance(value, Mapping):
            given = ", ".join(f"{name} = {json.dumps(option)}" for name, option in value.items() if name != "name")
            raise ValueError(
                f"these are stages, each with its options: write --credit.{info.field_name} "
                f"'[{{name = \"NAME\", {given}}}]', or [[credit.{info.field_name}]] in a recipe"
            )
        return value

    @field_validator("rewards", "modulation")
    @classmethod
    def _each_once(cls, stages: tuple[StageConfig, ...]) -> tuple[StageConfig, ...]:
        twice = [name for name, count in Counter(stage.name for stage in stages).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} is named twice: its effect would count twice; put it into one entry")
        return stages

    @model_validator(mode="after")
    def _stages_go_together(self, info: ValidationInfo) -> Self:
        """Refuse stages that exclude each other, also without a run: credit can be used by itself."""
        if info.context != UNFINISHED and (
            reason := self._refuse_weights() or self._refuse_order() or self._refuse_advantage()
        ):
            raise ValueError(reason)
        return self

    def _refuse_weights(self) -> str | None:
        by_turn = [stage for stage in self.modulation if not stage.by_token]
        if by_turn and self.advantage.by_token:
            return (
                f"{by_turn[0].name} weighs turns, but {self.advantage.name} gives credit to tokens: take an "
                f"advantage of turns ({_of_turns()}), or leave the modulation out"
            )
        for early, late in pairwise(self.modulation):
            if early.by_token and not late.by_token:
                return f"{early.name} weighs tokens, and {late.name} after it turns: put {early.name} last"
        first: dict[str, str] = {}
        for stage in self.modulation:
            if stage.weighs_by in first:
                return (
                    f"{first[stage.weighs_by]} and {stage.name} both weigh turns by their {stage.weighs_by}, against "
                    "each other: leave one out"
                )
            if stage.weighs_by is not None:
                first[stage.weighs_by] = stage.name
        return None

    def _refuse_order(self) -> str | None:
        """A stage that names a part of the reward comes after what adds it, and before what empties it."""
        for place, stage in enumerate((*self.rewards, self.advantage)):
            named = stage.named_parts()
            later = {part: other.name for other in self.rewards[place:] for part in other.adds}
            if early := sorted(named & later.keys()):
                return (
                    f"{stage.name} names the part {early[0]!r}, which {later[early[0]]} adds: put it after that stage"
                )
            for other in self.rewards[:place]:
                gone = sorted(named & other.empties)
                if gone and stage is self.advantage:
                    return (
                        f"{stage.name} reads the part {gone[0]!r}, which {other.name} has paid out and left at 0: "
                        f"leave {other.name} out, or take an advantage that compares returns, such as gigpo"
                    )
                if gone:
                    return (
                        f"{stage.name} names the part {gone[0]!r}, which {other.name} has paid out before it and left "
                        f"at 0: put it before {other.name}, or name a part that {other.name} adds "
                        f"({', '.join(sorted(other.adds))})"
                    )
        return None

    def _refuse_advantage(self) -> str | None:
        reasons = (stage.refuse_advantage(self.advantage) for stage in self.rewards)
        return next(filter(None, reasons), None)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if run.objective.averages_over_reply and self.advantage.by_token:
            return (
                f"{self.advantage.name} gives credit to tokens, which {run.objective.name} averages away over a reply: "
                f"take an advantage of turns ({_of_turns()}), or another objective"
            )
        if run.objective.averages_over_reply and (weighs := [one.name for one in self.modulation if one.by_token]):
            return (
                f"{weighs[0]} weighs tokens, which {run.objective.name} averages away over a reply: leave it out, or "
                "take another objective, such as clip"
            )
        judged = set[str]() if run.judge is None else {run.judge.part}
        reason = self._refuse_verdicts(judged, env)
        return reason or (self._refuse_parts(env, judged) if env and env.lists_parts else None)

    def _refuse_verdicts(self, judged: set[str], env: EnvFacts | None) -> str | None:
        """A part that a stage takes for verdicts is the judge's, or one that the environment lists."""
        if env is None:
            return None
        for stage in (*self.rewards, self.advantage):
            if stage.reads_verdicts and stage.part not in {*judged, *env.part_names}:
                return (
                    f"{stage.name} reads verdicts in the part {stage.part!r}, which nothing pays: add a section "
                    "[judge], or list a part of the environment in part_names"
                )
        return None

    def _refuse_parts(self, env: EnvFacts, judged: set[str]) -> str | None:
        """A part that a stage names is one of the environment's, its wrappers', the judge's, or of a stage before."""
        there = {OUTCOME, *judged, *own_parts(env.part_names, env.roles)}
        for stage in self.rewards:
            if missing := sorted(stage.named_parts() - there):
                return (
                    f"{stage.name} names the reward part {missing[0]!r}, which nothing pays: {env.name} and the stages "
                    f"before it pay {', '.join(sorted(there))}"
                )
            there |= stage.adds
        return None


def _name(value: Any) -> Any:
    """The name in a value of a recipe."""
    return value.get("name") if isinstance(value, Mapping) else value


def _of_turns() -> str:
    return ", ".join(ADVANTAGES.names(lambda kind: not kind.by_token))
