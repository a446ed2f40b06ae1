"""Options that make a step on a card shorter, each with a forecast of its own.

Every change of the list is applied to the run's configuration by itself. One that the configuration refuses, that is
set already, or with which the step does not fit on the card, is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.setup.step_forecast import StepForecast

CHANGES: Sequence[Mapping[str, Mapping[str, Any]]] = (
    {"learner": {"old_logprobs": "engine"}},
    {"learner": {"weights": "bfloat16"}},
    {"learner": {"gradient_checkpointing": False}},
    {"engine": {"reproducible": False}},
    {"engine": {"merge_adapters": True}},
    {"engine": {"name": "vllm"}},
)
_LEAST = 0.02  # share of a step that is worth a line


class StepChange(NamedTuple):
    """A change of options, and the seconds of a step that it saves."""

    options: Mapping[str, Mapping[str, Any]]
    saved: float

    @property
    def text(self) -> str:
        """The options as they are written.

        >>> StepChange({"learner": {"old_logprobs": "engine"}}, 20.0).text
        'learner.old_logprobs = "engine"'
        """
        pairs = [(f"{part}.{name}", value) for part, names in self.options.items() for name, value in names.items()]
        return ", ".join(f"{name} = {_toml(value)}" for name, value in pairs)


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def shorter_steps(
    now: StepForecast,
    memory: float,
    configured: Callable[[Mapping[str, Any]], RunConfig],
    forecast: Callable[[RunConfig], StepForecast],
) -> list[StepChange]:
    """The changes that save time and fit, the most first.

    Args:
        now: the forecast without a change.
        memory: bytes of the card.
        configured: makes the run's configuration with further options.
        forecast: of a configuration.
    """
    unchanged, changes = configured({}), list[StepChange]()
    for options in CHANGES:
        try:
            config = configured(options)
            step = None if config == unchanged else forecast(config)
        except ConfigError:
            continue
        if step is None or max(step.drawing, step.learning) > memory:
            continue
        if (saved := now.seconds - step.seconds) > _LEAST * now.seconds:
            changes.append(StepChange(options, saved))
    return sorted(changes, key=lambda change: -change.saved)
