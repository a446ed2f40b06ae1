"""Evaluations: the policies, the panel that is asked for, the rewards that count, and what is shown of them."""

import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from manyturn.agents.evaluation.evaluate import Evaluation, EvaluationPlan, refuse_other_settings
from manyturn.agents.evaluation.evaluate import evaluate as play_panel
from manyturn.agents.evaluation.finished_episodes import Progress
from manyturn.agents.evaluation.format_mismatch import reply_remarks
from manyturn.agents.evaluation.remarks import invalid_reply
from manyturn.agents.evaluation.summary_table import print_summaries, print_summary
from manyturn.agents.play.python_policy import PythonPolicy, code_of
from manyturn.api.loaded_policy import LoadedPolicy
from manyturn.api.named_policy import SECTIONS, Candidate, EvaluateConfig, find_policy, option_in, sections_of
from manyturn.api.shown_experience import ShownExperience
from manyturn.api.task_panel_file import TaskChoice, args_of, as_toml, limit_remark, panel_of, read_panel
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.options import ConfigError, unknown
from manyturn.envs.contract.registration.env_name import env_name
from manyturn.envs.contract.registration.env_registry import is_only_by_hand
from manyturn.envs.contract.tasks.env_identity import arg_differences, listed
from manyturn.envs.contract.tasks.panel import Panel, portable_name
from manyturn.envs.hosting.local.seats import USUAL_TIMEOUT, Seats, open_seats
from manyturn.report.report_file import write_report
from manyturn.terminal.env_args import read_wrappers
from manyturn.terminal.escape import visible
from manyturn.terminal.evaluation_progress import Watch
from manyturn.terminal.event_loop import result_of
from manyturn.terminal.overrides import OverrideError

if TYPE_CHECKING:
    import gymnasium

Wrappers = Sequence[Any]
_QUOTED = 200  # characters of a reply that are shown below a table


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation besides the policy; None leaves the choice to the policy, the panel or the default.

    Attributes:
        env: an id, FILE.py:Class, or another project's, such as openenv:URL.
        env_args: arguments of its constructor.
        wrappers: turn-level rewards, also as TOML text such as ``[{name = "turn_cost", cost = 0.01}]``.
        panel: a panel's file, in place of split, limit, tasks and env_args. Arguments that a file must not give, such
            as programs, still come from env_args.
        repeats: episodes of each task.
        workers: processes that host the environment; 0 keeps it in this one.
        timeout: seconds that the environment may take for one answer, with workers.
        out: folder for what was found; of several policies each has a folder in it.
        tasks: ids, ``@FILE``, ``failed:FOLDER`` or ``tag=NAME``; none: the first of the split. ``limit`` counts among
            the chosen ones.
        experience: file, or an improvement's folder, of what the policy is shown.
    """

    env: str | None = None
    env_args: Mapping[str, Any] | None = None
    wrappers: str | Wrappers | None = None
    split: str | None = None
    limit: int | None = None
    panel: Path | None = None
    repeats: int = 1
    seed: int = 0
    workers: int = 0
    timeout: float | None = None
    out: Path | None = None
    tasks: str | Sequence[str] | None = None
    experience: Path | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.workers:
            raise ValueError(
                "--timeout has no effect without --workers: an environment in this process cannot be ended alone; add "
                "--workers 1"
            )


def evaluate(
    policy: Any,
    env: "str | type[gymnasium.Env] | None" = None,
    *,
    env_args: Mapping[str, Any] | None = None,
    wrappers: Wrappers | None = None,
    split: str | None = None,
    limit: int | None = None,
    tasks: str | Sequence[str] | None = None,
    panel: str | os.PathLike[str] | None = None,
    repeats: int = 1,
    seed: int = 0,
    workers: int = 0,
    timeout: float | None = None,
    out: str | os.PathLike[str] | None = None,
    experience: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> Evaluation:
    """Evaluate a policy on held-out tasks, and wait until it is done; works in a notebook too.

    >>> def first(observation, info):
    ...     return info["admissible"][0]
    >>> evaluate(first, "manyturn/Maze-v0", limit=4).summary["n_episodes"]
    4

    Args:
        policy: a function, class or object as ``PythonPolicy`` takes it, or any word that ``manyturn evaluate`` takes:
            a run's folder, ``"openai:MODEL"``, ``"expert"``, ``"FILE.py:POLICY"``; or what ``load_policy`` returned.
        env: an id, ``FILE.py:Class`` or a class; a run knows its own.
        env_args: arguments of the environment's constructor.
        wrappers: turn-level rewards, such as ``[{"name": "turn_cost", "cost": 0.01}]``.
        split: the split that the panel is taken from. Default: test.
        limit: tasks on the panel, at most. Default: 128, or all that ``tasks`` names.
        tasks: tasks to play, as ids, ``"@FILE"`` of ids, ``"failed:FOLDER"`` of an evaluation, or ``"tag=NAME"``.
        panel: a panel's file, in place of split, limit, tasks and env_args.
        repeats: episodes of each task.
        seed: sampling noise and episode randomness derive from it.
        workers: processes that host the environment; 0 keeps it in this one.
        timeout: seconds that the environment may take for one answer, with workers. Default: 60.
        out: folder for what is found; an interrupted evaluation in it continues.
        experience: file, or folder of an improvement, of what the policy is shown; see ``improve``.
        progress: show how far it is, on the standard error output.
        options: those of the policy by section, such as ``sampling={"temperature": 0.0}``.

    Raises:
        ValueError: a policy, an option or a setting will not do.
        PolicyError: the policy's code raised; the error that it raised is its cause.
        TooManyErrors: the environment or an endpoint fails too often; with ``out``, what was finished is kept.
    """
    world = {"env_args": env_args, "wrappers": wrappers, "workers": workers, "timeout": timeout}
    choice = {"split": split, "limit": limit, "tasks": tasks, "panel": panel, "repeats": repeats, "seed": seed}
    settings = settings_in_python(env, **world, **choice, out=out, experience=experience)
    return result_of(evaluate_policies([_plain(policy)], settings, options, quiet=not progress))[0]


def settings_in_python(env: "str | type[gymnasium.Env] | None", **given: Any) -> Settings:
    """Settings where an environment may be a class, and a place a text."""
    places = {name: Path(given[name]) for name in ("panel", "out", "experience") if given.get(name) is not None}
    return Settings(env=None if env is None else env_name(env), **{**given, **places})


def _plain(policy: Any) -> Any:
    """A path as a word."""
    return os.fspath(policy) if isinstance(policy, os.PathLike) else policy


class Entrant(NamedTuple):
    """One of the policies of a call: what it is called there, what it is, and where what it does is kept."""

    name: str
    candidate: Candidate
    out: Path | None


async def evaluate_policies(
    policies: Sequence[Any], settings: Settings, options: Mapping[str, Any], quiet: bool = False
) -> list[Evaluation]:
    """Evaluate policies on one panel, one after the other.

    Args:
        policies: for each a word as ``find_policy`` takes it, or what ``PythonPolicy`` takes.
        options: options of the policies, see ``find_policy``; of several policies each gets those that concern it.
        quiet: show no progress.

    Raises:
        ValueError: a policy, an option or a setting will not do; nothing has been played.
    """
    async with entrants_of(policies, settings, options) as entrants:
        return await _evaluate(entrants, settings, quiet)


@asynccontextmanager
async def entrants_of(
    policies: Sequence[Any], settings: Settings, options: Mapping[str, Any]
) -> AsyncIterator[list[Entrant]]:
    """The policies of a call, loaded; in the end their engines are shut down. Takes and raises what
    ``evaluate_policies`` does."""
    for name in options:
        if name not in SECTIONS:
            raise OverrideError(_no_option(name))
    shown, options = ShownExperience.read(settings.experience, options)
    if shown is not None and len(policies) > 1:
        raise ValueError("--experience is of one policy: evaluate each by itself, then compare their folders")
    async with AsyncExitStack() as stack:
        entrants = []
        for name, policy, given, out in _options_of_each(policies, settings, options):
            if isinstance(policy, LoadedPolicy):
                candidate = loaded_candidate(policy, given)
            else:
                candidate = (
                    find_policy(policy, given) if isinstance(policy, str) else policy_in_python(policy, name, given)
                )
                for engine in candidate.engines:
                    stack.push_async_callback(engine.shutdown)
            if shown is not None:
                stack.enter_context(shown.counted())
                candidate = shown.given_to(candidate, out)
            entrants.append(Entrant(name, candidate, out))
        yield entrants


def _no_option(name: str) -> str:
    """Message about a name that is neither a setting nor a section, with the nearest of all options."""
    settings = ("env.args", *(name for name in Settings.__dataclass_fields__ if name != "env_args"), *SECTIONS)
    message = EvaluateConfig.no_option(name)
    if near_names(name, settings, n=1, cutoff=0.75) or "did you mean" not in message:
        message = unknown("option of evaluate", name, settings)
    return message.replace("_", "-")


def policy_in_python(policy: Any, name: str, options: Mapping[str, Any]) -> Candidate:
    if options:
        raise OverrideError(f"{option_in(options, next(iter(options)))} has no effect: {name} is called as it is")
    return Candidate(PythonPolicy(policy, name, code_of(policy)))


def loaded_candidate(policy: LoadedPolicy, options: Mapping[str, Any]) -> Candidate:
    if options:
        option = option_in(options, next(iter(options)))
        raise OverrideError(f"{option} has no effect: {policy.word} is loaded: give it to load_policy")
    policy.rest()
    return policy.candidate


def show(names: Sequence[str], evaluations: Sequence[Evaluation], settings: Settings, console: Console) -> None:
    """Print what was found, and write the reports.

    Args:
        names: what the policies are called.
    """
    remarks = {
        name: reply_remarks(evaluation.episodes, evaluation.turns, evaluation.summary["agent"])
        for name, evaluation in zip(names, evaluations, strict=True)
    }
    explained = [name for name, one in remarks.items() if one.explain_invalid]
    if len(evaluations) == 1:
        print_summary(evaluations[0].summary, console, invalid_explained=bool(explained))
    else:
        named = zip(names, evaluations, strict=True)
        print_summaries({name: evaluation.summary for name, evaluation in named}, console, explained)
    if remark := limit_remark(evaluations[0].panel, settings.limit):
        console.print(Text(remark), soft_wrap=True)
    for name, one in remarks.items():
        for remark in one.lines:
            whose = f"{name}: " if len(evaluations) > 1 else ""
            console.print(Text(f"{whose}{remark}"), soft_wrap=True)
    for name, evaluation in zip(names, evaluations, strict=True):
        if name not in explained and (reply := invalid_reply(evaluation.summary, evaluation.turns)) is not None:
            whose = f"{name}: " if len(evaluations) > 1 else ""
            words = visible(" ".join(reply.split()))
            console.print(Text(f"{whose}such a reply: {_shortened(words)}"), soft_wrap=True)
    if settings.out is not None:
        folders = folders_of(names, settings.out)
        pages = [write_report(folder) for folder in folders]
        if len(folders) == 1:
            print(f"{pages[0]} shows every turn")
        else:
            print(f"{settings.out} has a report.html of each, which shows every turn")
            # The first is what the others are compared with: a floor, so that more is a plus.
            by_floor = sorted(zip(names, folders, strict=True), key=lambda one: one[0] != "random")
            print(f"task by task: manyturn compare {shlex.join(str(folder) for _, folder in by_floor)}")
    else:
        console.print("nothing is kept: --out FOLDER keeps figures and turns, for report and compare", highlight=False)
    if wrappers := evaluations[0].summary["wrappers"]:
        used = ", ".join(str(wrapper["name"]) for wrapper in wrappers)
        console.print(f"rewards are those with {used}", markup=False, highlight=False)


def _shortened(words: str) -> str:
    return words if len(words) <= _QUOTED else f"{words[:_QUOTED]}…"


async def _evaluate(entrants: Sequence[Entrant], settings: Settings, quiet: bool) -> list[Evaluation]:
    for entrant in entrants:
        check_code(entrant, settings)
    entrants, settings = in_one_env(entrants, settings)
    own = next((entrant.candidate.env for entrant in entrants if entrant.candidate.env is not None), None)
    pinned = _pinned(settings, own)
    env = settings.env or (pinned.env if pinned and not is_only_by_hand(pinned.env) else own)
    if env is None:
        raise ValueError("which environment? Add --env, such as --env manyturn/Maze-v0 (see manyturn envs)")
    args, wrappers = one_world(env, settings, entrants)
    if pinned and settings.panel:
        args = args_of(pinned, settings.panel, env, settings.env_args or {}, args)
        pinned = replace(pinned, args=args)
    async with seats_of(env, args, wrappers, settings) as seats:
        choice = TaskChoice(settings.split or "test", settings.tasks, settings.limit)
        panel = pinned or panel_of(choice, seats.facts, env, args, seats.identity)
        if remark := panel.remark_on(seats.identity):
            print(f"note: {remark}", file=sys.stderr)
        for entrant in entrants:
            entrant.candidate.guard(panel)
            for remark in _remarks_on(entrant, seats, args, settings):
                print(visible(f"note: {remark}"), file=sys.stderr)
            if entrant.out is not None and len(entrants) > 1:
                refuse_other_settings(seats, entrant.candidate.policy, _plan(entrant, panel, settings), entrant.out)
        secrets = secrets_of(entrants)
        return [await play(entrant, seats, panel, settings, secrets, quiet) for entrant in entrants]


def check_code(entrant: Entrant, settings: Settings) -> None:
    """Raise ConfigError where a run from elsewhere would decide which code runs here."""
    candidate = entrant.candidate
    home = candidate.homes.get(settings.env or "")
    for env, guarded in candidate.foreign_code:
        if home is not None:
            is_named = home.id != env
        else:
            is_same = settings.env is not None and portable_name(settings.env) == portable_name(env)
            is_named = settings.env is not None and (not is_same or not guarded or bool(settings.env_args))
        if is_named:
            continue
        args = candidate.env_args or next((one.args for one in candidate.homes.values() if one.id == env), {})
        words = f"--env {env}" + (f" --env.args '{as_toml(args)}'" if args else "")
        raise ConfigError(
            f"{entrant.name} was not begun by this account, and names code that would run here: if you trust it, add "
            f"{words}"
        )


def _remarks_on(entrant: Entrant, seats: Seats, args: Mapping[str, Any], settings: Settings) -> list[str]:
    """Lines on where a policy, or the experience that it is shown, comes from."""
    remarks = [remark] if (remark := _elsewhere_remark(entrant, seats, args, settings)) else []
    if (experience := entrant.candidate.experience) is None:
        return remarks
    if experience.by_hand:
        remarks.append("the experience was written by hand, so whether it knows these tasks cannot be checked")
    elif experience.env != portable_name(seats.facts.name):
        remarks.append(f"the experience is of {experience.env}, and these tasks are of {seats.facts.name}")
    return remarks


def _elsewhere_remark(entrant: Entrant, seats: Seats, args: Mapping[str, Any], settings: Settings) -> str | None:
    """A line on a policy that was trained in another environment than it is evaluated in; None for others.

    Wrappers that are named now are meant to be others.
    """
    was = entrant.candidate.env_identity
    if was is None:
        return None
    from manyturn.trainers.record.env_changes import env_changes_since

    edited = () if settings.wrappers is None else ("env.wrappers",)
    changes = env_changes_since(was, seats.identity, edited)
    changes += arg_differences(entrant.candidate.env_args or {}, args)
    return f"{entrant.name} was trained in another environment ({listed(changes)})" if changes else None


def seats_of(env: str, args: Mapping[str, Any], wrappers: Wrappers, settings: Settings) -> Seats:
    """Seats in which the episodes of an evaluation run."""
    timeout = USUAL_TIMEOUT if settings.timeout is None else settings.timeout
    return open_seats(env, args, wrappers, limit=512, workers=settings.workers, timeout=timeout)


def secrets_of(entrants: Sequence[Entrant]) -> frozenset[str]:
    """Parts of the command line that must not be shown; the command line is saved with each evaluation."""
    return frozenset(secret for one in entrants for secret in getattr(one.candidate.policy, "secrets", ()))


def _plan(entrant: Entrant, panel: Panel, settings: Settings) -> EvaluationPlan:
    candidate = entrant.candidate
    return EvaluationPlan(panel, settings.repeats, settings.seed, candidate.max_turns, label=candidate.policy.name)


async def play(
    entrant: Entrant, seats: Seats, panel: Panel, settings: Settings, secrets: frozenset[str], quiet: bool
) -> Evaluation:
    """Evaluate one policy on one panel, whose environment has the seats."""
    name, candidate, out = entrant
    async with AsyncExitStack() as stack:
        watch: Any = _unseen if quiet else await stack.enter_async_context(Watch(name, out))
        return await play_panel(
            seats,
            candidate.policy,
            _plan(entrant, panel, settings),
            out=out,
            secrets=secrets,
            on_progress=watch,
        )


def _unseen(progress: Progress) -> None:
    """Nobody looks."""


def _options_of_each(
    policies: Sequence[Any], settings: Settings, options: Mapping[str, Any]
) -> list[tuple[str, Any, Mapping[str, Any], Path | None]]:
    """Of each policy its name, itself, its options and its folder."""
    names = names_of(policies)
    given: list[Mapping[str, Any]] = [options]
    if len(policies) > 1:
        takes = [sections_of(policy) if isinstance(policy, str) else () for policy in policies]
        for section in options:
            if not any(section in sections for sections in takes):
                option = option_in(options, section)
                raise OverrideError(f"--{option} has no effect: it concerns none of {', '.join(names)}; leave it out")
        given = [{section: options[section] for section in sections if section in options} for sections in takes]
    folders: list[Path | None] = [None] * len(policies)
    if settings.out is not None:
        folders = [*folders_of(names, settings.out)]
        if len(policies) > 1 and (settings.out / "episodes.jsonl").exists():
            raise ValueError(f"{settings.out} holds the evaluation of one policy: name another folder for several")
    return list(zip(names, policies, given, folders, strict=True))


def names_of(policies: Sequence[Any]) -> list[str]:
    """Names of the policies of a call: the words as typed; for functions and classes their names."""
    names = [_name_of(one) for one in policies]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is named twice: name each policy once")
    return names


def _name_of(policy: Any) -> str:
    if isinstance(policy, LoadedPolicy):
        return policy.word
    return policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)


def folders_of(names: Sequence[str], out: Path) -> list[Path]:
    """Folder of each policy's evaluation: the folder itself if there is one policy, else a subfolder by its name."""
    if len(names) == 1:
        return [out]
    stems = [stem_of(name) for name in names]
    for number, stem in enumerate(stems):
        if stem in stems[:number]:
            first = names[stems.index(stem)]
            raise ValueError(
                f"{names[number]} and {first} would share the folder {out / stem}: evaluate one of them apart"
            )
    return [out / stem for stem in stems]


def stem_of(name: str) -> str:
    """Folder name of a policy."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "policy"


def in_one_env(entrants: Sequence[Entrant], settings: Settings) -> tuple[list[Entrant], Settings]:
    """Entrants and settings, where a policy was trained in several environments and one of them is named."""
    here = [one._replace(candidate=one.candidate.in_env(settings.env)) for one in entrants]
    for one, now in zip(entrants, here, strict=True):
        if settings.env in one.candidate.homes:  # the run's name of an environment, which is no id
            return here, replace(settings, env=now.candidate.env)
    return here, settings


def one_world(env: str, settings: Settings, entrants: Sequence[Entrant]) -> tuple[Mapping[str, Any], Wrappers]:
    """Arguments and wrappers of the environment for all policies; raises ValueError if two were trained on others."""
    at_home = [one for one in entrants if one.candidate.env and portable_name(one.candidate.env) == portable_name(env)]
    worlds = [_world(env, settings, one.candidate) for one in at_home or entrants[:1]]
    for entrant, world in zip(at_home, worlds, strict=False):
        if world != worlds[0]:
            raise ValueError(
                f"{at_home[0].name} and {entrant.name} were trained with other arguments or wrappers of {env}: give "
                "--env.args and --wrappers, or evaluate them apart"
            )
    return worlds[0]


def _world(env: str, settings: Settings, candidate: Candidate) -> tuple[Mapping[str, Any], Wrappers]:
    """Arguments and wrappers of the environment: those asked for, else the run's if the environment is the run's."""
    is_own = candidate.env is not None and portable_name(env) == portable_name(candidate.env)
    args = settings.env_args or (candidate.env_args if is_own else None) or {}
    if settings.wrappers is None:
        return args, candidate.wrappers if is_own else ()
    return args, read_wrappers(settings.wrappers)


def _pinned(settings: Settings, own: str | None) -> Panel | None:
    """The panel of the file that was named, if one was.

    Args:
        own: the environment that a policy was trained on.
    """
    if settings.panel is None:
        return None
    if settings.limit is not None or settings.tasks is not None:
        raise ValueError(f"a panel says which tasks: leave --{'limit' if settings.limit is not None else 'tasks'} out")
    return read_panel(settings.panel, settings.env or own, settings.split)
