"""Training as shown on a terminal or in a notebook cell."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from manyturn.envs.contract.env.roles import PARTS
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.report.write import write_report
from manyturn.terminal.exit_codes import BAD_INPUT, LEARNING_FAILED, code_of, innermost
from manyturn.terminal.notebook_bar import notebook_bar
from manyturn.terminal.progress import stop
from manyturn.terminal.run_outcome import print_outcome, say
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.learning_curve import draw_curve
from manyturn.trainers.record.stop_signal import Stopped

_SHOWN = {
    "success": "success {:.2f}",
    "turns": "turns {:.1f}",
    "invalid": "invalid {:.0%}",
    "cut": "cut {:.0%}",
    "entropy": "entropy {:.3f}",
    "approx_kl": "kl {:+.4f}",
    "groups_without_signal": "no signal {:.0%}",
    "packing_ratio": "computed {:.0%}",
    "grad_norm": "grad {:.2f}",
    "staleness": "staleness {:.1f}",
    "dropped": "dropped {:.0%}",
    "length_bias": "length {:+.1%}",
    "warmup_left_seconds": "at most {:.0f} s left",
    "estimate_error": "missed {:.3f}",
    "estimate_explained": "explained {:.0%}",
    "value_explained": "critic explained {:.0%}",
}
_HEADS = {
    "vocabulary": "words of task {tasks} of {planned}",
    "demonstrations": "shown {demonstrations:7d}",
    "imitation": "imitate {updates:5d}",
    "warmup": "warm-up {updates:5d}",
    "exploration": "explore {played_episodes:5d}",
    "estimator": "estimate {updates:4d}",
    "critic": "critic {updates:6d}",
    "train": "step {step:8d}",
    "validation": "valid {step:7d}",
}
_COST = {"demonstrations": ("rollout",), "imitation": ("learn",), "warmup": ("learn", "rollout")}
_PARTS = 4  # parts of rewards in a line, at most


class TrainingReport:
    """Prints a line for each step and the summary at the end; on a terminal a bar says how long it will take.

    In a notebook a bar with the newest line takes the place of the lines.

    Args:
        out: the run's folder.
        config: the run's configuration.
    """

    def __init__(self, out: Path, config: RunConfig):
        self._out, self._config = out, config
        self._console = Console(highlight=False, force_jupyter=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._cell, self._done = notebook_bar(), 0
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
        if line["phase"] == "begin":
            config = self._config
            steps = f"{config.steps} step{'' if config.steps == 1 else 's'}"
            about = f"{config.env.id}, model {config.model.label}, seed {config.seed}, {steps}"
            self._say(f"{about}; run folder {self._out}")
            return
        if line["phase"] == "notice":
            self._say(f"note: {line['notice']}")
            return
        head = _HEADS[line["phase"]].format(**line)
        shown = [form.format(line[key]) for key, form in _SHOWN.items() if line.get(key) is not None]
        shown += _parts(line)
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

    def finish(self, summary: dict[str, Any]) -> None:
        """Print what the run achieved."""
        stop(self._bar)
        print_outcome(summary, self._console)
        picture, page = draw_curve(self._out, summary), write_report(self._out)
        took = f"{summary['seconds']:.0f} s, loading and drawing not counted"
        self._say(f"{took}; {self._out}/summary.json, {picture}, and {page} for every turn")

    def _say(self, text: str) -> None:
        say(text, self._console)


def _parts(line: Mapping[str, Any]) -> list[str]:
    """The first of the named parts of rewards besides the outcome."""
    names = [key for key in line if key.startswith(PARTS) and key != PARTS + OUTCOME and line[key] is not None]
    return [f"{key.removeprefix(PARTS)} {line[key]:.3g}" for key in names[:_PARTS]]


def _may_go_on(error: BaseException) -> bool:
    """True if a run that this error ended may get further when resumed: its input is not at fault."""
    if isinstance(error, Stopped | KeyboardInterrupt):
        return True
    return code_of(innermost(error)) not in (BAD_INPUT, LEARNING_FAILED)
