"""``manyturn evaluate``: a policy, the panel it is asked for, and the rewards that count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from manyturn.agents.evaluate import evaluate, held_out_guard
from manyturn.agents.summary import print_summary
from manyturn.candidate import SECTIONS, Candidate, find_policy
from manyturn.comparison import read_panel
from manyturn.envs.contract.environments import is_file
from manyturn.envs.contract.options import unknown
from manyturn.envs.contract.panel import Panel, make_panel, portable_name
from manyturn.envs.hosting.seats import open_seats
from manyturn.overrides import OverrideError, read_value
from manyturn.report.write import write_report

Wrappers = Sequence[Any]


@dataclass(frozen=True)
class Settings:
    """What is asked for, besides the policy; None leaves a choice to the policy, the panel or the default.

    Attributes:
        env: an id, or FILE.py:Class.
        env_args: arguments of its constructor.
        wrappers: turn-level rewards as TOML text, such as ``[{name = "turn_cost", cost = 0.01}]``.
        panel: a panel's file, in place of split, limit and env_args.
        repeats: episodes of each task.
        workers: processes that host the environment; 0 keeps it in this one.
        out: folder for what was found.
    """

    env: str | None = None
    env_args: Mapping[str, Any] | None = None
    wrappers: str | None = None
    split: str | None = None
    limit: int | None = None
    panel: Path | None = None
    repeats: int = 1
    seed: int = 0
    workers: int = 0
    out: Path | None = None


async def evaluate_policy(word: str, settings: Settings, asked: Mapping[str, Any]) -> None:
    """Evaluate the policy that ``word`` names, and print the summary.

    Args:
        asked: options of the policy, see ``find_policy``.
    """
    known = (*Settings.__dataclass_fields__, *SECTIONS)
    for name in asked:
        if name not in SECTIONS:
            raise OverrideError(unknown("option of evaluate", name, known).replace("_", "-"))
    candidate = find_policy(word, asked)
    try:
        await _evaluate(candidate, settings)
    finally:
        for engine in candidate.engines:
            await engine.shutdown()


async def _evaluate(candidate: Candidate, settings: Settings) -> None:
    pinned = _pinned(settings, candidate)
    env = settings.env or (pinned.env if pinned and not is_file(pinned.env) else candidate.env)
    if env is None:
        raise ValueError("which environment? Add --env, such as --env manyturn/Maze-v0 (see manyturn envs)")
    args, wrappers = _world(env, settings, candidate)
    if pinned:
        args = pinned.args
    async with open_seats(env, args, wrappers, limit=512, workers=settings.workers) as seats:
        split, limit = settings.split or "test", 128 if settings.limit is None else settings.limit
        panel = pinned or make_panel(seats.tasks(split), env, split, limit, args)
        held_out_guard(panel, candidate.seen)
        result = await evaluate(
            seats,
            candidate.policy,
            panel,
            repeats=settings.repeats,
            seed=settings.seed,
            max_turns=candidate.max_turns,
            label=candidate.policy.name,
            out=settings.out,
        )
    console = Console()
    print_summary(result.summary, console)
    if settings.out is not None:
        print(f"{write_report(settings.out)} shows every turn")
    if seats.wrappers:
        names = ", ".join(str(wrapper["name"]) for wrapper in seats.wrappers)
        console.print(f"rewards are those with {names}", markup=False, highlight=False)


def _world(env: str, settings: Settings, candidate: Candidate) -> tuple[Mapping[str, Any], Wrappers]:
    """Arguments and wrappers of the environment: those asked for, else the run's if the environment is the run's."""
    is_own = candidate.env is not None and portable_name(env) == portable_name(candidate.env)
    args = settings.env_args or (candidate.env_args if is_own else None) or {}
    if settings.wrappers is None:
        return args, candidate.wrappers if is_own else ()
    wrappers = read_value(settings.wrappers)
    if not isinstance(wrappers, list) or not all(isinstance(wrapper, dict | str) for wrapper in wrappers):
        raise ValueError('wrappers is no TOML list of tables, such as [{name = "turn_cost", cost = 0.01}]')
    return args, wrappers


def _pinned(settings: Settings, candidate: Candidate) -> Panel | None:
    """The panel of the file that was named, if one was."""
    if settings.panel is None:
        return None
    if settings.limit is not None or settings.env_args:
        raise ValueError("a panel says which tasks and which arguments: leave --limit and --env-args out")
    return read_panel(settings.panel, settings.env or candidate.env, settings.split)
