"""Training from Python: what ``manyturn train`` does, as a function."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from manyturn.agents.evaluation.notebook import as_html
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.registration.env_name import env_name
from manyturn.recipes import named_recipe, refusals_by_recipe
from manyturn.recipes.inert_stages import without_idle_units
from manyturn.recipes.recipe_name_hint import refuse_recipe_names
from manyturn.recipes.stack import combined, named_env, replaced_settings
from manyturn.terminal.event_loop import result_of
from manyturn.terminal.overrides import put_option
from manyturn.terminal.results_table import print_outcome
from manyturn.trainers.recipe.config import RunConfig, configure, names_envs, parts_as_tables

if TYPE_CHECKING:
    import gymnasium

Name = str | os.PathLike[str]


class Trained(NamedTuple):
    """A run that is over.

    Attributes:
        folder: the run's, which ``evaluate``, ``manyturn report`` and ``manyturn train --resume`` take.
        summary: figures before and after, as in ``summary.json``.
    """

    folder: Path
    summary: dict[str, Any]

    def show(self, console: Console | None = None) -> None:
        """Print the table of success before and after."""
        print_outcome(self.summary, console or Console())

    def _repr_html_(self) -> str:
        return as_html(self.show)


def train(
    env: "str | type[gymnasium.Env] | None" = None,
    /,
    *,
    recipe: Name | Sequence[Name] = (),
    out: Name | None = None,
    report: Callable[[dict[str, Any]], object] | None = None,
    progress: bool = False,
    **options: Any,
) -> Trained:
    """Train an agent on an environment, and wait until it is done; works in a notebook too.

    >>> run = train("doors.py:Doors", steps=20, learner={"lr": 3e-4}, **{"credit.advantage": "rloo"})  # doctest: +SKIP

    Args:
        env: an id, ``FILE.py:Class`` or a class, unless a recipe names it. By position only: ``env={...}`` is the
            section of the configuration.
        recipe: a TOML file, or the name of a recipe that comes with manyturn; several are laid on each other in order.
        out: folder of the run. Default: runs/ENV, numbered.
        report: called with each line of metrics and each notice, such as ``print``.
        progress: show how far it is: a bar in a notebook, elsewhere the lines of ``manyturn train``.
        options: entries of the configuration, as in a recipe: a section is a dict, a name may have dots. See
            ``manyturn options``.

    Raises:
        ValueError: an option does not exist, cannot work or has no effect; nothing was begun.
        KeyboardInterrupt: Ctrl-C. ``resume(folder)`` goes on from the last checkpoint.
        Stopped: SIGTERM; the same.
        LearningFailed, TooManyErrors, DiskFull: the run cannot go on.
    """
    names = [recipe] if isinstance(recipe, str | os.PathLike) else recipe
    recipes = [os.fspath(name) for name in names]
    with refusals_by_recipe(recipes):
        config = configured(recipes, nested(options), env)
        return _played(config, Path(out) if out is not None else fresh_folder(config.env_title), report, progress)


def resume(
    folder: Name,
    *,
    steps: int | None = None,
    accept_config: bool = False,
    accept_env: bool = False,
    accept_code: bool = False,
    report: Callable[[dict[str, Any]], object] | None = None,
    progress: bool = False,
) -> Trained:
    """Continue a run from its last checkpoint, to the same bits as if it had never been interrupted.

    Args:
        folder: the run's.
        steps: how many steps the run is to have, also if it was over; None: as many as before.
        accept_config: go on although its ``config.toml`` was edited, or a partner in a role has changed, since.
        accept_env: go on although its environment has changed since; ``env_changes`` in the summary says when.
        accept_code: run the code that its ``config.toml`` names although another account or machine began the run.
        report: see ``train``.
        progress: see ``train``.
    """
    accept = accepted(config=accept_config, env=accept_env, code=accept_code)
    return _played(None, Path(folder), report, progress, accept=accept, steps=steps)


def accepted(*, config: bool, env: bool, code: bool) -> tuple[str, ...]:
    """Acceptance of changes since the last checkpoint, and of code that others have named."""
    return tuple(name for name, is_accepted in (("config", config), ("env", env), ("code", code)) if is_accepted)


def configured(recipes: Sequence[str], changes: Mapping[str, Any], env: Any = None, **given: Any) -> RunConfig:
    """The configuration of a run.

    Args:
        recipes: names or files, the lowest first.
        changes: entries on top.
        env: the environment, if no recipe and no change names it.
        given: further entries that the caller settles.

    Raises:
        ValueError: no environment is named, or an entry will not do.
    """
    refuse_recipe_names(parts_as_tables(changes))
    if env is not None:
        if (other := named_env(changes)) is not None:
            raise ConfigError(f"{env_name(env)} and env.id = {other}: name one environment")
        if changes.get("envs"):
            raise ConfigError(f"{env_name(env)} and envs: name one environment, or all of them in envs")
        given["env"] = {"id": env_name(env)}
    loaded = [named_recipe(name) for name in recipes]
    named = named_env(changes, given)
    if not any(map(names_envs, (changes, given, *(recipe.values for recipe in loaded)))):
        raise ConfigError(
            "which environment? Name one, such as manyturn/Maze-v0 (see manyturn envs), or give --recipe with the "
            "recipe of a complete run (see manyturn recipes)"
        )
    config, left_out = without_idle_units(configure(combined(loaded, named), given, dict(changes)), changes)
    for line in (*replaced_settings(loaded), *left_out):
        print(f"note: {line}", file=sys.stderr)
    return config


def nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by section: a name with dots is an entry of its section.

    >>> nested({"steps": 3, "learner.lr": 0.1, "learner": {"epochs": 2}})
    {'steps': 3, 'learner': {'lr': 0.1, 'epochs': 2}}
    """
    section: dict[str, Any] = {}
    for name, value in options.items():
        put_option(section, name, value)
    return section


@contextmanager
def without_foreign_bars() -> Iterator[None]:
    """Saves models without the bars of transformers, and leaves the caller's setting as it was."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def fresh_folder(env: str) -> Path:
    """The first folder runs/ENV-1, runs/ENV-2 and so on that is not there yet."""
    stem = env.rpartition(":")[2].rpartition("/")[2].lower().replace(" + ", "-")
    numbers = (n for n in range(1, 10_000) if not Path(f"runs/{stem}-{n}").exists())
    return Path(f"runs/{stem}-{next(numbers)}")


def _played(
    config: RunConfig | None,
    folder: Path,
    report: Callable[[dict[str, Any]], object] | None,
    progress: bool,
    **resuming: Any,
) -> Trained:
    from manyturn.report.report_file import write_report
    from manyturn.terminal.training_progress import TrainingReport
    from manyturn.trainers.learn.ranks.process_group import started_ranks
    from manyturn.trainers.record.curve_plot import draw_curve
    from manyturn.trainers.record.run_folder import read_config
    from manyturn.trainers.record.stop_signal import Stopped
    from manyturn.trainers.run.loop.loop import train as run

    if started_ranks() > 1:
        raise ConfigError(
            "a script would run once in each of torchrun's processes: torchrun --nproc-per-node N -m manyturn train"
        )

    shown = None
    if progress:
        steps, settings = resuming.get("steps"), config or read_config(folder)
        shown = TrainingReport(folder, settings if steps is None else settings.model_copy(update={"steps": steps}))

    def pass_on(line: dict[str, Any]) -> None:
        for listener in (shown, report):
            if listener is not None:
                listener(line)

    try:
        with without_foreign_bars(), shown or nullcontext():
            summary = result_of(run(config, folder, resume=config is None, report=pass_on, **resuming))
    except Stopped as stopped:
        if stopped.signal is not signal.SIGINT:
            raise
        raise KeyboardInterrupt(f"{stopped}; manyturn.resume({str(folder)!r}) goes on") from None
    draw_curve(folder, summary)
    write_report(folder)
    return Trained(folder, summary)
