"""Training as shown on a terminal or in a notebook cell."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from manyturn.envs.contract.env.roles import PARTS
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.report.report_file import write_report
from manyturn.terminal.command_exit import BAD_INPUT, LEARNING_FAILED, code_of, innermost
from manyturn.terminal.duration import duration
from manyturn.terminal.evaluation_progress import stop
from manyturn.terminal.notebook_bar import notebook_bar
from manyturn.terminal.results_table import print_outcome, say
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.curve_plot import draw_curve
from manyturn.trainers.record.shown_metrics import figures_in_line
from manyturn.trainers.record.stop_signal import Stopped
from manyturn.trainers.run.forecast.early_estimate import EarlyEstimate, Remaining

_HEADS = {
    "vocabulary": "words of task {tasks} of {planned}",
    "demonstrations": "shown {demonstrations:7d}",
    "imitation": "imitate {updates:5d}",
    "warmup": "warm-up {updates:5d} shown {demonstrations:6d}",
    "exploration": "explore {played_episodes:5d}",
    "estimator": "estimate {updates:4d}",
    "critic": "critic {updates:6d}",
    "train": "step {step:8d}",
    "validation": "valid {step:7d}",
}
_COST = {"demonstrations": ("rollout",), "imitation": ("learn",), "warmup": ("learn", "rollout")}
_PARTS = 4  # parts of rewards in a line, at most
_CLOCK = {"playing": "rollout_seconds", "learning": "learn_seconds"}  # in lines of metrics
_REST = "evaluating and saving"


class RunClock:
    """Runs from when it is made; as text it is the total with its parts, such as ``9 s: loading 4, learning 5``."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._parts = dict.fromkeys(("loading", *_CLOCK, _REST), 0.0)
        self._last: tuple[str, float] | None = None

    def take(self, line: Mapping[str, Any]) -> None:
        """Count the seconds of a line of metrics; those before the line ``begin`` are loading."""
        if line["phase"] == "begin":
            self._parts["loading"] = time.monotonic() - self._began
        for part, key in _CLOCK.items():
            self._parts[part] += line.get(key) or 0.0

    def begin(self, part: str) -> None:
        """Count what comes now as another, last part."""
        self._last = (part, time.monotonic())

    def __str__(self) -> str:
        now, parts = time.monotonic(), dict(self._parts)
        last = 0.0 if self._last is None else now - self._last[1]
        parts[_REST] = max(0.0, now - self._began - sum(self._parts.values()) - last)
        if self._last is not None:
            parts[self._last[0]] = last
        return f"{now - self._began:.0f} s: " + ", ".join(f"{part} {seconds:.0f}" for part, seconds in parts.items())


class TrainingReport:
    """Prints a line for each step and the summary at the end; on a terminal a bar says how long it will take.

    In a notebook a bar with the newest line takes the place of the lines.

    Args:
        out: the run's folder.
        config: the run's configuration.
    """

    def __init__(self, out: Path, config: RunConfig):
        self._out, self._config = out, config
        self._console, self._clock = Console(highlight=False, force_jupyter=False), RunClock()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._cell, self._done, self._early = notebook_bar(), 0, EarlyEstimate(config)
        hidden = self._cell is not None or not self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, transient=True, disable=hidden)
        self._steps = self._bar.add_task("warm-up", total=config.steps)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        stop(self._bar)
        error = exception[1]
        if isinstance(error, BaseException) and _may_go_on(error) and (self._out / "config.toml").is_file():
            saved = any((self._out / "checkpoints").glob("step_*"))
            does = "continues it" if saved else "begins it again, for nothing was saved yet"
            self._say(f"stopped: manyturn train --resume {self._out} {does}")

    def __call__(self, line: dict[str, Any]) -> None:
        self._clock.take(line)
        if line["phase"] == "begin":
            config = self._config
            steps = f"{config.steps} step{'' if config.steps == 1 else 's'}"
            credit = f"advantage {config.credit.advantage.name}"
            about = f"{config.env_title}, model {config.model.label}, {credit}, seed {config.seed}, {steps}"
            self._say(f"{about}; run folder {self._out}")
            if (done := line.get("done")) is not None:
                self._say(
                    f"resumes {f'after step {done}' if done else 'before the first step'}; {_to_go(config, done)}"
                )
                return
            self._say(f"to do: {self._early.amounts(line).words}; the first step shows how long that takes")
            return
        if line["phase"] == "notice":
            self._say(f"note: {line['notice']}")
            return
        head = _HEADS[line["phase"]].format(**line)
        shown = [*figures_in_line(line), *_parts(line)]
        shown += [f"{name} {line[f'{name}_seconds']:.0f} s" for name in _COST.get(line["phase"], ())]
        if line.get("errors"):
            shown.append(f"errors {line['errors']}")
        text = f"{head}  {line['seconds']:6.0f} s  {'  '.join(shown)}"
        if line["phase"] == "train":
            self._done = line["step"]
            self._bar.update(self._steps, completed=self._done, description="training")
        if self._cell is None:
            self._say(text)
        else:
            self._cell(text, self._done, self._config.steps)
        if (remaining := self._early.take(line)) is not None:
            self._say(_remaining_words(remaining))

    def finish(self, summary: dict[str, Any]) -> None:
        """Print what the run achieved."""
        stop(self._bar)
        print_outcome(summary, self._console)
        self._clock.begin("drawing")
        picture, page = draw_curve(self._out, summary), write_report(self._out)
        self._say(f"{self._clock}; {self._out}/summary.json, {picture}, and {page} for every turn")

    def _say(self, text: str) -> None:
        say(text, self._console)


def _to_go(config: RunConfig, done: int) -> str:
    """The steps that a run still has to do, such as ``1 step to go``."""
    left = max(0, config.steps - done)
    return f"{left:,} step{'' if left == 1 else 's'} to go"


def _remaining_words(remaining: Remaining) -> str:
    """An estimate in a line."""
    step = f"a step plays {duration(remaining.playing)} and learns {duration(remaining.learning)}"
    return (
        f"estimate: {duration(remaining.total)} in all, {duration(remaining.left)} of them to go, if steps stay like "
        f"step {remaining.step}: {step}, and the evaluations to come take {duration(remaining.measuring)}"
    )


def _parts(line: Mapping[str, Any]) -> list[str]:
    """The first of the named parts of rewards besides the outcome."""
    names = [key for key in line if key.startswith(PARTS) and key != PARTS + OUTCOME and line[key] is not None]
    return [f"{key.removeprefix(PARTS)} {line[key]:.3g}" for key in names[:_PARTS]]


def _may_go_on(error: BaseException) -> bool:
    """True if a run that this error ended may get further when resumed: its input is not at fault."""
    if isinstance(error, Stopped | KeyboardInterrupt):
        return True
    return code_of(innermost(error)) not in (BAD_INPUT, LEARNING_FAILED)
