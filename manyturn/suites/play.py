"""Playing a suite: the panels one after the other, each in a folder from which an interrupted suite continues."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.api.evaluation import Entrant, Settings, entrants_of, names_of, play, seats_of, secrets_of, stem_of
from manyturn.suites import find_suite
from manyturn.suites.compatibility import checked, refuse_needs
from manyturn.suites.result import Result, Tally
from manyturn.suites.suite import SuiteError, SuitePanel

_FIXED = ("env", "env_args", "wrappers", "split", "limit", "tasks", "panel")


async def evaluate_suite(
    policies: Sequence[Any],
    suite: str,
    settings: Settings,
    options: Mapping[str, Any],
    *,
    only: Sequence[str] = (),
    require: Sequence[str] = (),
    quiet: bool = False,
) -> list[Result]:
    """Evaluate policies on the panels of a suite; the result of each is kept as ``suite.json`` in its folder.

    Args:
        policies: as ``evaluate_policies`` takes them.
        suite: a suite's name or file.
        settings: those that a suite does not fix. Without ``out`` results are kept in ``runs/suite-NAME``.
        options: options of the policies.
        only: panels or families; default: all.
        require: needs, ``NEEDS``, whose absence is an error; of panels that lack something else it is said that they
            were skipped.
        quiet: show no progress.

    Raises:
        SuiteError: see ``checked``. Nothing has been played then.
        NotHeldOut: a policy was trained on a panel.
    """
    _refuse(settings, require)
    frozen, file = find_suite(suite)
    chosen = frozen.chosen(only)
    names = names_of(policies)
    if settings.out is None:
        root = Path("runs") / f"suite-{frozen.name}"
        settings = replace(settings, out=root if len(names) > 1 else root / stem_of(names[0]))
    async with entrants_of(policies, settings, options) as entrants:
        ready, lacking = checked(frozen, file, chosen, tuple(require))
        _guard(ready, entrants)
        tallies = [Tally(frozen, file, settings) for _ in entrants]
        for one in chosen:
            if one.name in lacking:
                for tally in tallies:
                    tally.skip(one, lacking[one.name])
            else:
                await _play_panel(one, entrants, tallies, settings, quiet)
        return [tally.finish(_out(entrant)) for entrant, tally in zip(entrants, tallies, strict=True)]


async def _play_panel(
    one: SuitePanel, entrants: Sequence[Entrant], tallies: Sequence[Tally], settings: Settings, quiet: bool
) -> None:
    secrets = secrets_of(entrants)
    async with seats_of(one.panel.env, one.panel.args, (), settings) as seats:
        for entrant, tally in zip(entrants, tallies, strict=True):
            if entrant.candidate.policy is SCRIPTS["expert"] and not seats.facts.has_expert:
                tally.skip(one, f"{one.panel.env} has no expert")
                continue
            at_panel = Entrant(f"{entrant.name} on {one.name}", entrant.candidate, _out(entrant) / one.name)
            tally.take(one, await play(at_panel, seats, one.panel, settings, secrets, quiet))


def _refuse(settings: Settings, require: Sequence[str]) -> None:
    for name in _FIXED:
        if getattr(settings, name) not in (None, {}, ()):
            raise SuiteError(f"a suite says which tasks are played: leave --{name.replace('_', '.')} out")
    refuse_needs(require)
    if settings.out is not None and (settings.out / "episodes.jsonl").exists():
        raise SuiteError(f"{settings.out} holds an evaluation of one environment: name another folder for a suite")


def _guard(ready: Sequence[SuitePanel], entrants: Sequence[Entrant]) -> None:
    for entrant in entrants:
        for one in ready:
            try:
                entrant.candidate.guard(one.panel)
            except NotHeldOut as error:
                raise NotHeldOut(f"{one.name}: {error}; --only NAME plays some panels alone") from None


def _out(entrant: Entrant) -> Path:
    assert entrant.out is not None  # a suite always has a folder
    return entrant.out
