"""The command that writes an environment as a folder of another project."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from manyturn.terminal.env_args import EnvArgs, read_wrappers


def export(
    env: str,
    *,
    as_: Annotated[Literal["verifiers", "skyrl", "trl", "harbor", "dataset"], Parameter(name="--as")],
    out: Path,
    env_args: EnvArgs = None,
    wrappers: Annotated[str | None, Parameter(name=("--env.wrappers", "--wrappers"))] = None,
    limit: int = 1000,
) -> None:
    """Write an environment as a package that another project runs, or as a data set.

    Parameters
    ----------
    env
        Environment: an id, or FILE.py:Class.
    as_
        verifiers: a taskset with an environment and a harness for vf-eval and prime-rl. skyrl: an environment
        of skyrl-gym, and rows for its trainer. trl: an environment_factory for GRPOTrainer, and its rows. harbor:
        folders of software tasks by split, judged by a script of their own. dataset: a folder as the Hugging Face Hub
        has them, with each task's hash, seed and first messages.
    out
        The folder, which must not be there yet.
    env_args
        Arguments of its constructor: a TOML table, such as {difficulty = "hard"}, or by name, as in
        --env.args.difficulty hard.
    wrappers
        Turn-level rewards as a TOML list, such as [{name = "turn_cost", cost = 0.01}].
    limit
        Most tasks of each split.
    """
    from manyturn.export.export import export as run

    panels = run(env, out, as_, env_args, read_wrappers(wrappers or []), limit)
    for split, panel in panels.items():
        first = "the first " if len(panel) == limit else ""
        print(f"{split}: {first}{len(panel)} tasks{', see --limit' if first else ''}, hash {panel.hash}")
    print(f"{out / 'README.md'} says what to do with it")
