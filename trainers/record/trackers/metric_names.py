"""Names of a run's metrics in trackers: our keys by phase, and next to them the names that users of other
trainers look for."""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.envs.contract.env.roles import PARTS
from manyturn.trainers.record.shown_metrics import SHOWN

PHASES = {"train": "train", "validation": "eval"}  # other phases keep their names
_OTHER_NAMES = {shown.key: shown.other_name for shown in SHOWN if shown.other_name}
TIMES = {"rollout_seconds": "timing_s/gen", "learn_seconds": "timing_s/update"}
_PLACES = ("phase", "step", "seconds")
_BY_UPDATES = ("demonstrations", "imitation", "warmup", "estimator", "critic")


def place(line: Mapping[str, Any]) -> int:
    """The place of a line of metrics on its axis: the step, and before the first step the number of updates.

    >>> place({"phase": "train", "step": 3}), place({"phase": "warmup", "step": 0, "updates": 50})
    (3, 50)
    """
    return int(line.get("updates", 0) if line["phase"] in _BY_UPDATES else line["step"])


def named(line: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a line of metrics under all their names; what is no number is left out.

    >>> named({"phase": "train", "step": 3, "return": 0.5, "parts/outcome": 0.4, "engine_alarm": "far apart"})
    {'train/return': 0.5, 'train/reward': 0.5, 'train/parts/outcome': 0.4, 'train/rewards/outcome': 0.4}
    """
    phase = PHASES.get(line["phase"], line["phase"])
    metrics: dict[str, float] = {}
    for key, value in line.items():
        if key in _PLACES or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        metrics[f"{phase}/{key}"] = value
        metrics.update((f"{phase}/{other}", value) for other in _others(key))
    if line["phase"] == "train":
        times = {name: line[key] for key, name in TIMES.items() if isinstance(line.get(key), int | float)}
        metrics |= {**times, "timing_s/step": sum(times.values())} if times else {}
    return metrics


def _others(key: str) -> Iterator[str]:
    owner, slash, last = key.rpartition("/")
    if last in _OTHER_NAMES and not key.startswith(PARTS):
        yield f"{owner}{slash}{_OTHER_NAMES[last]}"
    elif key.startswith(PARTS):
        yield f"rewards/{key.removeprefix(PARTS)}"
