"""Commands about environments and their tasks."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from manyturn.terminal import command_exit
from manyturn.terminal.env_args import EnvArgs
from manyturn.terminal.escape import visible
from manyturn.terminal.task_option import TaskWords

data_app = App(name="data", help="External data: check and prepare it.")
panel_app = App(name="panel", help="Fixed lists of tasks on which results are reported.")


@panel_app.command(name="make")
def panel_make(
    env: str,
    *,
    split: str = "test",
    limit: int | None = None,
    tasks: TaskWords = None,
    out: Path = Path("panel.json"),
    env_args: EnvArgs = None,
) -> None:
    """Write a panel: the first different problems of a split, or chosen ones, pinned by a hash.

    Parameters
    ----------
    env
        Environment: an id, FILE.py:Class, or another project's, such as openenv:URL.
    split
        The split that the tasks are taken from.
    limit
        Tasks on the panel, at most. Default: 200, or all that --tasks names.
    tasks
        Tasks to choose: ids, @FILE of ids, failed:FOLDER for those at which the policy of an evaluation failed, or
        tag=NAME. Several are put together. Default: the first of the split.
    out
        The file; one that holds another panel is not overwritten.
    env_args
        Arguments of its constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard.
    """
    from manyturn.api.task_panel_file import TaskChoice, make_panel_file

    make_panel_file(env, TaskChoice(split, tasks, limit, usual=200), out, env_args or {})


@panel_app.command(name="verify")
def panel_verify(panel: Path, *, env: str | None = None, env_args: EnvArgs = None) -> None:
    """Check that the environment still has a panel's tasks; print the panel's name, hash and size.

    Parameters
    ----------
    panel
        The file.
    env
        Where the environment's file is now, if it has moved.
    env_args
        Arguments of its constructor that a panel's file must not give, such as programs, as a TOML table.
    """
    from manyturn.api.task_panel_file import verify_panel_file

    verify_panel_file(panel, env, env_args=env_args)


@data_app.command(name="webshop")
def data_webshop(folder: Path, *, original: int | None = None, nouns: bool = False, accept: bool = False) -> None:
    """Check WebShop's official files by hash and count; prepare all 1.18 million products if it is these.

    Parameters
    ----------
    folder
        Folder of the files of 1,000 products, or of all.
    original
        Prices and price limits as in a run of the original that was given this seed.
    nouns
        Record the nouns of all titles with spaCy, for the reward "spacy" in processes without it.
    accept
        Accept the files as they are, even if they differ from what was recorded.
    """
    from manyturn.api.webshop_data import webshop

    if not webshop(folder, original, nouns, accept):
        sys.exit(1)


def play(env: str, *, env_args: EnvArgs = None, split: str = "train", task: str | None = None, seed: int = 0) -> None:
    """Play an environment yourself in the terminal.

    Rewards are shown, and the expert can be asked.

    Parameters
    ----------
    env
        Environment: an id, FILE.py:Class, or another project's, such as openenv:URL.
    env_args
        Arguments of its constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard.
    split
        The split that tasks are drawn from.
    task
        Id of the first task; default: the seed draws one.
    seed
        Decides which tasks are drawn, and what is random inside an episode.
    """
    from manyturn.cli.play import play as run_play

    if not run_play(env, env_args or {}, split=split, task=task, seed=seed):
        sys.exit(1)


def new_env(
    name: str,
    *,
    out: Path = Path("."),
    kind: str = "text",
    package: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write an environment that works, and its test, to change into your own.

    Parameters
    ----------
    name
        Small letters, digits and _, such as my_world.
    out
        Folder that the two files go to, or the package's folder.
    kind
        text: commands of words; tools: calls of three tools; roles: two who act in turn; gymnasium: a plain
        gymnasium.Env.
    package
        Write a package that pip installs, in a folder of that name: every command then has the environment by its id.
    """
    from manyturn.cli.new_env import new_env as write
    from manyturn.cli.new_env import new_package

    if package:
        commands = new_package(name, out, kind)
        print(
            f"The package {out / name} is written. Change {out / name / name / 'world.py'}, then:",
            *commands,
            sep="\n  ",
        )
        return
    commands = write(name, out, kind)
    print(f"{out / name}.py and {out / f'test_{name}.py'} are written. Change the first, then:", *commands, sep="\n  ")


def envs(
    *names: str,
    long: bool = False,
    json: bool = False,
    markdown: bool = False,
    samples: int = 200,
    env_args: EnvArgs = None,
    timeout: float = 60.0,
) -> None:
    """List the environments; with --long or names, a card of each, measured now.

    Parameters
    ----------
    names
        Environments to show: ids, or FILE.py:Class; default: all that are registered.
    long
        Show cards: instructions, splits, difficulties, success of expert and random policy, speed, anchor, licence.
    json
        Print the cards as JSON.
    markdown
        Print a page of each instead, in Markdown: what it is, its arguments and levels; nothing is played.
    samples
        Tasks that the expert and the random policy play for a card.
    env_args
        Arguments of the constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard; for named environments only.
    timeout
        Seconds that an environment may take for one answer, for cards: it runs in a process of its own.
    """
    if markdown:
        _pages(names, env_args, long or json)
    elif names or long or json:
        _cards(names, json, samples, env_args or {}, timeout)
    elif env_args:
        raise ValueError("--env.args has no effect on the list: name the environment, such as manyturn/Maze-v0")
    else:
        _list_envs()


def check(
    env: str,
    *,
    env_args: EnvArgs = None,
    samples: int = 20,
    timeout: float = 60.0,
    audit: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    data_files: Annotated[tuple[Path, ...], Parameter(name="--known", negative="", show_default=False)] = (),
) -> None:
    """Check that an environment keeps the contract; with --audit, that its reward is not paid for nothing.

    Tasks, spaces, determinism, rewards, success, lengths, speed.

    Each line is printed as soon as it is known; a warning does not fail, and what cannot be made ends with exit code 2.
    The environment runs in a process of its own: one that hangs or ends the process is a finding like any other.

    With --audit no contract is checked. Policies that do nothing useful play held-out tasks: constant, empty, echoing,
    repeating, memorising ones, and texts that ask for the reward. The exit code is 1 if one is paid like the expert.

    Parameters
    ----------
    env
        Environment: an id, FILE.py:Class, or another project's, such as openenv:URL.
    env_args
        Arguments of its constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard.
    samples
        Episodes for each split, of expert and random policy each; fewer for slow environments, such as a browser. With
        --audit: held-out tasks that each policy plays once.
    timeout
        Seconds that the environment may take for one answer.
    audit
        Probe the reward, and write a scorecard: docs/scorecard.md.
    out
        With --audit, the page; a JSON file of the same name lies beside it. Default: scorecard.md.
    data_files
        With --audit, a file that held-out tasks are compared with: text, JSON, JSON lines or CSV. May be given several
        times.
    """
    if audit:
        from manyturn.cli.scorecard_lines import print_scorecard

        place = out or Path("scorecard.md")
        if not print_scorecard(env, env_args or {}, samples, timeout, out=place, data_files=data_files).passed:
            sys.exit(command_exit.UNFORESEEN)
        return
    if out is not None or data_files:
        raise ValueError(f"--{'known' if data_files else 'out'} has no effect without --audit: add --audit")
    from manyturn.cli.env_check_output import print_check

    report = print_check(env, env_args or {}, samples, timeout)
    if not report.passed:
        sys.exit(command_exit.UNFORESEEN if report.is_made else command_exit.BAD_INPUT)


def _list_envs() -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from manyturn.envs.contract.registration.env_registry import env_ids
    from manyturn.envs.hosting.handle.env_handle import EnvHandle

    # An id is there to be copied: the other columns make room for it.
    table, lacking = Table(Column("environment", no_wrap=True), "splits (tasks)", "most turns", "expert"), []
    for name in env_ids():
        try:
            with contextlib.closing(EnvHandle(name)) as handle:
                sizes = ", ".join(f"{split} {len(handle.tasks(split)):,}" for split in handle.splits)
                most = str(getattr(handle.env.unwrapped, "max_turns", "-"))
                table.add_row(name, sizes, most, "yes" if handle.has_expert else "no")
        except Exception as error:  # what one environment lacks, or does wrong, costs its own line and no other
            lacking.append(f"{name}: {command_exit.lack_of(error)}")
    console = Console(highlight=False)
    console.print(table)
    if lacking:
        console.print("not ready here:", *(Text(visible(line)) for line in lacking), sep="\n  ", soft_wrap=True)


def _pages(names: tuple[str, ...], env_args: EnvArgs, cards: bool) -> None:
    from manyturn.cli.pages.env_pages import page
    from manyturn.envs.contract.registration.env_registry import env_ids

    if env_args or cards:
        raise ValueError("--markdown prints what is written of an environment: leave out --long, --json and --env.args")
    pages = []
    for name in names or env_ids():
        try:
            pages.append(page(name))
        except Exception as error:
            if names:
                raise
            print(visible(f"{name} is left out: {command_exit.lack_of(error)}"), file=sys.stderr)
    print("\n".join(pages), end="")


def _cards(names: tuple[str, ...], as_json: bool, samples: int, env_args: dict[str, Any], timeout: float) -> None:
    import json
    from dataclasses import asdict

    from rich.console import Console

    from manyturn.cli.pages.env_cards import card, print_card
    from manyturn.envs.contract.registration.env_registry import env_ids

    if env_args and not names:
        raise ValueError("--env.args needs an environment that they are for: name it, such as manyturn/Maze-v0")

    def cards():
        for name in names or env_ids():
            try:
                yield card(name, env_args, samples, timeout)
            except Exception as error:
                if names:
                    raise
                print(visible(f"{name} is left out: {command_exit.lack_of(error)}"), file=sys.stderr)

    all_cards = cards()
    if as_json:
        print(json.dumps([asdict(one) for one in all_cards], indent=1))
        return
    for one in all_cards:
        print_card(one, Console(highlight=False))
