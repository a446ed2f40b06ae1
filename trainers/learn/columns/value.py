"""The column "value" (T): what the critic says before each reply token, out of the step's reading.

The head ``value`` is 0 everywhere at first, and learns in the updates from the targets that the advantage gives back;
``value.body`` says whose hidden states it reads.
"""

from typing import Any, Literal

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ValueColumnConfig(ColumnConfig):
    name: Literal["value"] = "value"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return None if run.value is not None else "a critic predicts: add a section [value]"

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if run.value is None:
            return None
        return "[value] has no effect: no stage of credit needs what it predicts; leave it out"


@COLUMNS.register(ValueColumnConfig)
def value(step: PlayedStep, config: ValueColumnConfig) -> Supplied:
    """The critic's values."""
    return Supplied(token_columns={"value": step.reading.at_replies(step.reading.head_values("value"))})
