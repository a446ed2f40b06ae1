"""Improvements from the command line and from Python: the policy, its writer, the pool and the held-out panel."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from manyturn.agents.experience.experienced_policy import deafness
from manyturn.agents.experience.improvement import Improvement, ImprovementPlan, Watcher, decodings
from manyturn.agents.experience.improvement import improve as improve_in_rounds
from manyturn.agents.experience.improvement_config import ImprovementConfig
from manyturn.agents.experience.method import METHODS
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, retrieval_of
from manyturn.agents.experience.store import Experience, read_experience
from manyturn.agents.experience.writer import writer_of
from manyturn.agents.play.agent import Agent
from manyturn.agents.play.episode import Policy
from manyturn.agents.play.python_policy import PythonPolicy
from manyturn.api.evaluation import (
    Entrant,
    Settings,
    check_code,
    entrants_of,
    in_one_env,
    one_world,
    seats_of,
    secrets_of,
    settings_in_python,
)
from manyturn.api.named_policy import SECTIONS, option_in, sections_of
from manyturn.api.task_panel_file import TaskChoice, panel_of
from manyturn.envs.contract.options.options import ConfigError, one_line, unknown
from manyturn.terminal.event_loop import result_of
from manyturn.terminal.improvement_progress import RoundLines
from manyturn.terminal.overrides import OverrideError

if TYPE_CHECKING:
    import gymnasium

OWN = tuple(ImprovementConfig.model_fields)


@dataclass(frozen=True)
class ImproveSettings:
    """Settings of an improvement besides its options.

    Attributes:
        world: environment, arguments, wrappers, workers, the tasks of the pool, and the folder.
        writer: the policy that writes; None for the one that is improved.
        experience: file or folder of what to begin with.
    """

    world: Settings
    writer: str | None = None
    experience: Path | None = None


def improve(
    policy: Any,
    env: "str | type[gymnasium.Env] | None" = None,
    *,
    out: str | os.PathLike[str],
    env_args: Mapping[str, Any] | None = None,
    wrappers: Sequence[Any] | None = None,
    tasks: str | Sequence[str] | None = None,
    workers: int = 0,
    timeout: float | None = None,
    writer: str | None = None,
    experience: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> Improvement:
    """Improve a policy by experience, in words and without training, and wait until it is done.

    >>> import tempfile
    >>> def policy(observation, info):  # guesses what an earlier attempt at this task ended with
    ...     return info["instructions"].rpartition(". ")[2] if "success" in info["instructions"] else "guess 50"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = improve(policy, "manyturn/GuessNumber-v0", out=folder, method="cases", rounds=1,
    ...                    pool={"limit": 2}, validation={"limit": 2})
    >>> [result.round for result in made.rounds]
    [0, 1]

    Args:
        policy: as ``evaluate`` takes it.
        env: an id, ``FILE.py:Class`` or a class; a run knows its own.
        out: folder of everything; an interrupted improvement in it continues.
        env_args: arguments of the environment's constructor.
        wrappers: turn-level rewards, such as ``[{"name": "turn_cost", "cost": 0.01}]``.
        tasks: tasks of the pool, as ids, ``"@FILE"`` of ids or ``"tag=NAME"``. Default: the first of its split.
        workers: processes that host the environment; 0 keeps it in this one.
        timeout: seconds that the environment may take for one answer, with workers. Default: 60.
        writer: the policy that writes lessons, such as ``"openai:MODEL"``. Default: the policy itself.
        experience: file or folder of an experience to begin with.
        progress: show each round, on the standard error output.
        options: ``method``, ``rounds`` and the others of ``ImprovementConfig``, and those of the policy by section,
            such as ``sampling={"temperature": 0.5}``.

    Raises:
        ValueError: a policy, an option or a setting will not do.
        NotHeldOut: a task of the validation panel is in the pool, in the experience, or was trained on.
        TooManyErrors: the environment, the endpoint or the writer fails too often; what was finished is kept.
    """
    playing = {"env_args": env_args, "wrappers": wrappers, "workers": workers, "timeout": timeout}
    world = settings_in_python(env, **playing, tasks=tasks, out=out)
    settings = ImproveSettings(world, writer, None if experience is None else Path(experience))
    named = os.fspath(policy) if isinstance(policy, os.PathLike) else policy
    return result_of(improve_policy(named, settings, options, quiet=not progress))


async def improve_policy(
    policy: Any, settings: ImproveSettings, options: Mapping[str, Any], quiet: bool = False
) -> Improvement:
    """Improve a policy; see ``improve``.

    Args:
        options: those of ``ImprovementConfig``, and of the policy by section.
        quiet: show nothing.
    """
    start = Experience() if settings.experience is None else read_experience(settings.experience)
    config, rest = _options(options, start)
    async with _policies(policy, settings, config, rest) as (entrant, author):
        check_code(entrant, settings.world)
        [entrant], world = in_one_env([entrant], settings.world)
        candidate = entrant.candidate
        if fault := deafness(candidate.policy):
            raise ValueError(fault)
        decodings(candidate.policy, config)  # before anything is played
        env = world.env or candidate.env
        if env is None:
            raise ValueError("which environment? Add --env, such as --env manyturn/Maze-v0 (see manyturn envs)")
        args, wrappers = one_world(env, world, [entrant])
        async with seats_of(env, args, wrappers, world) as seats:
            choices = [
                TaskChoice(config.pool.split, world.tasks, config.pool.limit),
                TaskChoice(config.validation.split, None, config.validation.limit),
            ]
            pool, validation = (panel_of(choice, seats.facts, env, args, seats.identity) for choice in choices)
            assert world.out is not None
            plan = ImprovementPlan(
                config,
                pool,
                validation,
                start,
                candidate.max_turns,
                world.out,
                candidate.seen,
                frozenset() if author is None else author.candidate.seen,
                secrets_of([entrant] if author is None else [entrant, author]),
                settings.experience,
            )
            writer = None if author is None else author.candidate.policy
            watcher = Watcher() if quiet else RoundLines(entrant.name, len(pool)).watcher
            return await improve_in_rounds(seats, candidate.policy, writer, plan, watcher)


def _options(options: Mapping[str, Any], start: Experience) -> tuple[ImprovementConfig, dict[str, Any]]:
    """The options of the improvement, and those of the policy by section.

    Args:
        start: the experience to begin with, whose retrieval holds unless another one is given.

    Raises:
        OverrideError: an option does not exist, has no effect, or its value will not do.
    """
    for name in options:
        if name not in (*OWN, *SECTIONS):
            raise OverrideError(unknown("option of improve", name, (*OWN, *SECTIONS)).replace("_", "-"))
    if "method" not in options:
        raise OverrideError(f"which method? Add --method, one of {', '.join(METHODS.names())}")
    try:
        own = {name: options[name] for name in options if name in OWN}
        config = ImprovementConfig(**own | {"retrieval": retrieval_of(start.retrieval, own.get("retrieval"))})
    except ValidationError as error:
        raise OverrideError(one_line(error)) from None
    by_task = METHODS.apply(config.method).by_task or any(entry.about for entry in start.entries)
    if "retrieval" in options and not by_task:
        raise ConfigError(f"retrieval has no effect: lessons of {config.method.name} are always shown; leave it out")
    return config, {name: value for name, value in options.items() if name not in OWN}


@asynccontextmanager
async def _policies(
    policy: Any, settings: ImproveSettings, config: ImprovementConfig, options: Mapping[str, Any]
) -> "AsyncIterator[tuple[Entrant, Entrant | None]]":
    """The policy and the writer, if texts are asked for, loaded; in the end their engines are shut down."""
    writes, word = METHODS.apply(config.method).writes, settings.writer
    if word is not None and not writes:
        raise ConfigError(f"--writer has no effect: the method {config.method.name} asks for no texts; leave it out")
    if "search" in options:
        raise OverrideError(
            f"--{option_in(options, 'search')} has no effect on an improvement, as attempts are plain: leave it out, "
            "and evaluate the policy with --search and --experience afterwards"
        )
    bare = replace(settings.world, out=None, tasks=None)
    async with AsyncExitStack() as stack:
        takes = sections_of(word) if word is not None else ()
        own = sections_of(policy) if isinstance(policy, str) else ()
        mine = {name: options[name] for name in options if name in own or name not in takes}
        [entrant] = await stack.enter_async_context(entrants_of([policy], bare, mine))
        author = entrant if writes else None
        if word is not None:
            theirs = {name: options[name] for name in options if name in takes}
            [author] = await stack.enter_async_context(entrants_of([word], bare, theirs))
        policies = [entrant.candidate.policy]
        if author is not None:
            policies += [writer := writer_of(author.candidate.policy, config.length)]
            author = author._replace(candidate=replace(author.candidate, policy=writer))
        if "length" in config.model_fields_set and not any(isinstance(one, Agent) for one in policies[1:]):
            raise ConfigError("length has no effect: no model in this process writes; leave it out")
        _check_budget(config, policies)
        yield entrant, author


def _check_budget(config: ImprovementConfig, policies: Sequence[Policy]) -> None:
    """Raise ConfigError for a limit that nothing would be counted against, or not everything."""
    limits = {name: limit for name, limit in config.budget if limit is not None}
    for policy in policies:
        if limits and isinstance(policy, PythonPolicy):
            raise ConfigError(
                f"budget.{next(iter(limits))} cannot be held: {policy.word}, in Python, counts no tokens; leave it out"
            )
    price = RETRIEVALS.apply(config.retrieval).price
    if "usd" in limits and price is None:
        raise ConfigError("budget.usd cannot be held: embeddings have no price; add --retrieval.price")
    if "usd" in limits and not price and not any(getattr(one, "priced", False) for one in policies):
        raise ConfigError(
            "budget.usd has no effect without prices: add --endpoint.price-in and --endpoint.price-out, for a role "
            "below its name"
        )
