"""The column "confidence" (K): how sure each turn's reply says that it is, in 0 to 1; NaN where it says nothing.

It stands between tags of the reply or of its reasoning, such as ``<confidence>0.8</confidence>`` or ``80%``; the last
pair counts. What is no number, or is out of 0 to 1, counts as nothing said.
"""

import re
from typing import Any, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ConfidenceConfig(ColumnConfig):
    name: Literal["confidence"] = "confidence"
    tag: str = Field(default="confidence", pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    """Name of the tags."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if not run.agent.only_admissible:
            return None
        return (
            f"reads <{self.tag}> in replies, which with agent.only_admissible are commands and nothing else: leave "
            "only_admissible or that stage out"
        )


@COLUMNS.register(ConfidenceConfig)
def confidence(step: PlayedStep, config: ConfidenceConfig) -> Supplied:
    """Of each turn."""
    turns = [turn for episode in step.episodes for turn in episode.turns]
    stated_K = [stated(f"{turn.reasoning}\n{turn.reply}", config.tag) for turn in turns]
    return Supplied(columns={"confidence": np.array(stated_K, np.float64)})


def stated(text: str, tag: str) -> float:
    """The confidence that a text states between tags; NaN for none.

    >>> [stated(text, "confidence") for text in ("<confidence> 80% </confidence>", "<confidence>1.5</confidence>", "")]
    [0.8, nan, nan]
    """
    pairs = re.findall(rf"<{tag}>\s*([0-9]*\.?[0-9]+)\s*(%?)\s*</{tag}>", text)
    if not pairs:
        return float("nan")
    number, percent = pairs[-1]
    value = float(number) / (100 if percent else 1)
    return value if value <= 1 else float("nan")
