"""Table of what a training will take, before it begins."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes import names, refusals_by_recipe
from manyturn.terminal import command_exit
from manyturn.terminal.duration import duration
from manyturn.terminal.overrides import parse_words
from manyturn.terminal.results_table import say
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_folder import RunFolderError

if TYPE_CHECKING:
    from manyturn.trainers.run.forecast.bottleneck import Advice
    from manyturn.trainers.run.forecast.run_estimate import RunEstimate


def estimate_training(config: RunConfig, out: Path | None = None, console: Console | None = None) -> "RunEstimate":
    """Try a training for a few updates and steps, and print what all of it will take. Nothing is kept.

    Args:
        out: folder that the training is to have, which is not touched; None: not settled yet.

    Raises:
        ConfigError, LearningFailed: as the training itself would.
        RunFolderError: the folder holds a run already.
    """
    from manyturn.api.training import without_foreign_bars
    from manyturn.trainers.run.forecast.bottleneck import bottleneck, warnings
    from manyturn.trainers.run.forecast.run_estimate import RunEstimate
    from manyturn.trainers.run.forecast.trial import Trial

    if out is not None and (out / "config.toml").is_file():
        raise RunFolderError(f"{out} holds a run already: name another folder with --out")
    with without_foreign_bars():
        trial = command_exit.run(Trial.of(config))
    estimate = RunEstimate.of(config, trial)
    show_estimate(config, estimate, [bottleneck(config, estimate), *warnings(config, estimate)], console or Console())
    return estimate


def estimate_named(
    name: str, recipes: Sequence[str], words: Sequence[str], console: Console | None = None
) -> "RunEstimate":
    """The estimate of a training that has not begun.

    Args:
        name: of a recipe or an environment.
        recipes: further recipes on top.
        words: further options, as for ``train``.
    """
    from manyturn.api.training import configured

    plain, options = parse_words(words)
    if plain:
        raise ConfigError(f"{plain[0]!r} is no option: write --section.name value")
    is_recipe = name in names() or name.endswith(".toml")
    loaded = [name, *recipes] if is_recipe else list(recipes)
    with refusals_by_recipe(loaded):
        config = configured(loaded, options, None if is_recipe else name)
        return estimate_training(config, console=console)


def show_estimate(config: RunConfig, estimate: "RunEstimate", advice: "list[Advice]", console: Console) -> None:
    """Print an estimate with its advice."""
    total = estimate.total
    say(f"to do: {estimate.amounts.words}", console)
    say(f"a trial with these options took {duration(estimate.trial.seconds)} and is deleted; no run was begun", console)
    say(f"estimate: {duration(total.seconds)}, in which the CPU works {duration(total.cpu_seconds)}", console)
    table = Table()
    for head in ("part", "time", "share"):
        table.add_column(head, justify="left" if head == "part" else "right")
    for name, cost in estimate.parts.items():
        table.add_row(name, duration(cost.seconds), f"{cost.seconds / total.seconds:.0%}")
    console.print(table)
    drawn, trained = estimate.tokens
    memory = [f"{mb:,.0f} MB of {_MEMORIES[name]}" for name, mb in estimate.memory_mb.items()]
    lines = [
        f"memory: at least {' and '.join(memory)}",
        f"tokens: about {drawn:,} said, {trained:,} read by updates",
        *_signal(estimate),
        *([] if estimate.usd is None else [f"endpoints: about {estimate.usd:.2f} USD at the prices given"]),
        f"limited by {advice[0].limit}; to shorten it: {advice[0].change}",
        *(f"note: {remark.limit}; try {remark.change}" for remark in advice[1:]),
        *_assumptions(config, estimate),
    ]
    for line in lines:
        say(line, console)


_MEMORIES = {"peak_memory_mb": "main memory", "peak_device_mb": "the device's memory"}


def _signal(estimate: "RunEstimate") -> list[str]:
    if estimate.signal is None:
        return []
    after = f" after {estimate.warmup} updates of imitation" if estimate.warmup else ""
    return [f"signal: {estimate.signal:.0%} of the groups in the trial's last step{after} had episodes that differ"]


def _assumptions(config: RunConfig, estimate: "RunEstimate") -> list[str]:
    """The assumptions behind the minutes, where there are any."""
    lines, success = list[str](), estimate.lengths.success
    if config.warmup.imitates and config.warmup.until_success:
        lines.append(
            f"assumed: the warm-up makes all its updates and ends at success {success or 0.0:.2f}; it ends earlier if "
            "it gets there earlier"
        )
    if estimate.lengths.steps != 1.0:
        lines.append("assumed: success then rises halfway to 1, and a success is as long as the expert's")
    return lines
