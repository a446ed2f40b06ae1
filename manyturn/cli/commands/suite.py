"""Commands about suites."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

suite_app = App(name="suite", help="Frozen panels across families: look at, check and make them.")


@suite_app.command(name="show")
def suite_show(name: str = "v1") -> None:
    """List the panels of a suite: environments, arguments, tasks, what they need.

    Parameters
    ----------
    name
        A suite's name, or its file.
    """
    from rich.console import Console

    from manyturn.suites import find_suite
    from manyturn.suites.table import show_suite

    show_suite(find_suite(name)[0], Console())


@suite_app.command(name="verify")
def suite_verify(
    name: str = "v1", *, only: tuple[str, ...] = (), require: Annotated[tuple[str, ...], Parameter(negative="")] = ()
) -> None:
    """Check that environments have the tasks, rules and words that a suite was frozen on; plays no policy.

    Parameters
    ----------
    name
        A suite's name, or its file.
    only
        Panels or families to check, such as maze or maze-hard. Default: all.
    require
        engine, browser or data: its absence is an error. Default: what is absent is named.
    """
    from rich.console import Console

    from manyturn.suites import find_suite
    from manyturn.suites.compatibility import checked, refuse_needs
    from manyturn.suites.table import show_checked

    refuse_needs(require)
    suite, file = find_suite(name)
    ready, lacking = checked(suite, file, suite.chosen(only), require)
    show_checked(suite, [one.name for one in ready], lacking, Console())


@suite_app.command(name="page")
def suite_page(name: str = "v1", *, results: Path | None = None) -> None:
    """Print the page of results in Markdown, made from files of results.

    Parameters
    ----------
    name
        A suite's name, or its file.
    results
        Folder of results, each the suite.json of an evaluation. Default: next to the suite's file, results and in it
        the suite's name.
    """
    from manyturn.suites import find_suite, results_folder
    from manyturn.suites.leaderboard import page

    suite, file = find_suite(name)
    print(page(suite, results or results_folder(file)), end="")


@suite_app.command(name="freeze")
def suite_freeze(plan: Path, *, out: Path) -> None:
    """Make a suite of your own: pin the tasks that a plan chooses, and what their environments answer.

    Parameters
    ----------
    plan
        TOML: name, a suite that it extends, and for each of panels its name, env, args, split and tasks; see
        docs/suite.md.
    out
        The file, for --suite; one that holds another suite is not overwritten.
    """
    from rich.console import Console

    from manyturn.suites.freeze import freeze
    from manyturn.suites.table import show_suite

    show_suite(freeze(plan, out), Console())
