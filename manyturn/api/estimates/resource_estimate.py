"""Table of the time and memory that a run will take."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.terminal.escape import visible
from manyturn.trainers.run.setup.duration_forecast import Measured, Planned, Step, measured, plan

STALENESS = (0, 1, 4)


def plan_run(
    run: Path,
    steps: int | None = None,
    first: int | None = None,
    staleness: Sequence[int] = (),
    places: Sequence[int] = (),
    console: Console | None = None,
) -> list[Planned]:
    """Print what a run will take, in several orders, from what its first steps took.

    Args:
        steps: of the whole run; None: as many as its configuration says.
        first: look at so many steps alone.
        staleness: orders to plan for, of which 0 is the synchronous one; none given: that of the run and a few others.
        places: episodes open together; none given: as many as the run has.

    Raises:
        ValueError: a number is too small, or more steps were to be looked at than were made.
        RunFolderError: see ``measured``.
    """
    for name, values, least in (
        ("steps", [steps], 1),
        ("first", [first], 1),
        ("staleness", staleness, 0),
        ("places", places, 1),
    ):
        if wrong := [value for value in values if value is not None and value < least]:
            raise ValueError(f"--{name} {wrong[0]} is too small: give {least} or more")
    measurement = measured(run, first)
    if first is not None and first > len(measurement.steps):
        raise ValueError(f"{run} has made {len(measurement.steps)} steps: leave --first out, or give at most that")
    orders = sorted(set(staleness or (measurement.staleness, *STALENESS)))
    rows = [
        plan(measurement, steps or measurement.config.steps, order, room)
        for order in orders
        for room in sorted(set(places)) or [_room(measurement, order)]
    ]
    _show(run, measurement, steps or measurement.config.steps, rows, console or Console(highlight=False))
    return rows


def _room(measured: Measured, staleness: int) -> int:
    """The places that the run would have in an order."""
    episodes = len(measured.steps[0].play_S)
    return min(measured.config.rollout.concurrency, episodes * (staleness + 1))


def _show(run: Path, measured: Measured, steps: int, rows: Sequence[Planned], console: Console) -> None:
    made, of_step = measured.steps, len(measured.steps[0].play_S)
    play, env = (mean(values) for values in ([sum(s.play_S) for s in made], [s.env_seconds for s in made]))
    lines = [
        f"{visible(str(run))}: {len(made)} steps of {of_step} episodes were measured, {measured.places} open together, "
        + (
            f"in asynchronous order of staleness {measured.staleness}" if measured.staleness else "in synchronous order"
        ),
        f"before the first step {measured.begin:.0f} s, {measured.evaluation:.0f} s of them evaluating, as at the end",
        "a step: "
        f"{mean(step.rollout_seconds for step in made):.2f} s to play, "
        f"{mean(step.learn_seconds for step in made):.2f} s to learn, "
        f"{mean(step.beside for step in made):.2f} s for the rest",
        f"an episode: {play / of_step:.2f} s, of which its environment {env / of_step:.3f} s",
        *_envs(made),
        *_memory(run),
    ]
    for line in lines:
        console.print(Text(line))
    table = Table(title=f"all {steps} steps", title_justify="left")
    for head in ("staleness", "places", "minutes", "episodes/h", "learner idle", "places idle", "environments at work"):
        table.add_column(head, justify="right")
    for row in rows:
        mark = "*" if (row.staleness, row.places) == (measured.staleness, measured.places) else ""
        table.add_row(
            f"{row.staleness}{mark}",
            f"{row.places:,}",
            f"{row.minutes:.1f}",
            f"{row.episodes_per_hour:,.0f}",
            f"{row.learner_idle:.0%}",
            f"{row.places_idle:.0%}",
            f"{row.env_turns:.2f}",
        )
    console.print(table)
    console.print(
        Text("* as it was measured. All others take a turn to last as long as there, however many there are.")
    )


def _envs(made: Sequence[Step]) -> list[str]:
    """A line for each of several environments: the duration of its episodes."""
    lines = list[str]()
    for env in made[0].by_env:
        if pairs := [pair for step in made for pair in step.by_env[env]]:
            full, own = (mean(seconds) for seconds in zip(*pairs, strict=True))
            lines.append(f"{env}: an episode {full:.2f} s, of which its environment {own:.3f} s")
    return lines


def _memory(run: Path) -> list[str]:
    """Peak memory of the run's process, after its end."""
    if not (run / "summary.json").is_file():
        return []
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    words = {"peak_memory_mb": "main memory", "peak_device_mb": "memory of the device"}
    return [f"{what}: {summary[key]:,.0f} MB at most" for key, what in words.items() if key in summary]
