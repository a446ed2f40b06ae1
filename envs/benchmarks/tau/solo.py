"""Nobody to talk to: the agent holds the customer's tools and works from a ticket."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyturn.envs.contract.options import Options
from manyturn.envs.contract.task import Task
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError


class SoloOptions(Options):
    """There is nothing to choose."""


class Nobody(User):
    """The user of solo mode, whom no environment calls."""

    name = "solo"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        return ""

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        raise UserError("in solo mode there is nobody to hear")

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        pass
