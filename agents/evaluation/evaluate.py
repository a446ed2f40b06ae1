"""Evaluation: a policy's success on a pinned panel of tasks, with intervals, tables and a journal to continue from."""

import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from manyturn.agents.evaluation.finished_episodes import KeptEpisodes, Progress
from manyturn.agents.evaluation.notebook import as_html
from manyturn.agents.evaluation.summary import scored_rows, spent_on, summarise
from manyturn.agents.evaluation.summary_table import print_summary
from manyturn.agents.evaluation.usage_meter import Metered
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.endpoint.options import without_secrets
from manyturn.agents.play.episode import Episode, Policy
from manyturn.agents.records.episode_log import FULL, DiskFull, Journal, OtherSettings
from manyturn.agents.records.episode_rows import EPISODES, TURNS, Row
from manyturn.agents.records.episode_rows import SCHEMA_VERSION as RECORDS_VERSION
from manyturn.agents.records.tables import table_in, write_table
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity, differences, listed
from manyturn.envs.contract.tasks.panel import Panel, PanelError, overlap, portable_name
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.seats import Seats

STAGE = "evaluate"
_FILES = ("panel.json", "summary.json")


class NotHeldOut(ValueError):
    """The policy was trained on tasks of the panel, so its results there say nothing about new tasks."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Result of an evaluation.

    Attributes:
        panel: N tasks.
        episodes: N x repeats rows of ``records.EPISODES``, task by task.
        turns: the rows of ``records.TURNS`` of these episodes, in the same order.
        summary: plain values, see ``summary.summarise``.
        played: how many of the episodes were played now and not found in the journal.
    """

    panel: Panel
    episodes: list[Row]
    turns: list[Row]
    summary: dict[str, Any]
    played: int

    def __repr__(self) -> str:
        mean = self.summary["success"]["mean"]
        success = "unknown" if mean is None else f"{mean:.1%}"
        return f"<Evaluation of {self.summary['policy']} on {self.panel.id}: success {success}; show() prints it>"

    def show(self, console: Console | None = None) -> None:
        """Print the table of what matters most."""
        print_summary(self.summary, console or Console())

    def _repr_html_(self) -> str:
        return as_html(self.show)


def held_out_guard(panel: Panel, seen: Collection[str], source: str = "the policy was trained") -> None:
    """Refuse a panel that the policy was trained on.

    Args:
        seen: contents (``Task.content``) of the tasks that the policy has learnt from.
        source: what was learnt from them, for the message.

    Raises:
        NotHeldOut: a problem of the panel is among them, be it under another id.
    """
    if tasks := overlap(panel, seen):
        raise NotHeldOut(
            f"{source} on {len(tasks)} of the {len(panel)} tasks of {panel.id}, first on {tasks[0]!r}: "
            "success there would not show how it does on new tasks. Evaluate on another split, or on a panel of tasks "
            "that it has not seen"
        )


@dataclass(frozen=True)
class EvaluationPlan:
    """Episodes to be played.

    Attributes:
        panel: N tasks.
        repeats: attempts at each task; pass@k needs k of them.
        seed: decides worlds and sampling noise.
        max_turns: for environments without a limit of their own.
        patience: limits on errors and retries.
        label: the name of the policy in tables, and by which an interrupted evaluation knows it again; it must differ
            where the weights differ. Default: the policy's name.
    """

    panel: Panel
    repeats: int
    seed: int
    max_turns: int
    patience: Patience = field(default_factory=Patience)
    label: str | None = None

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats counts the attempts at each task, so it is at least 1, not {self.repeats}")


async def evaluate(
    seats: Seats,
    policy: Policy,
    plan: EvaluationPlan,
    *,
    out: Path | None = None,
    secrets: Collection[str] = (),
    on_progress: Callable[[Progress], object] = lambda progress: None,
) -> Evaluation:
    """Play each task of a panel ``plan.repeats`` times.

    All repeats of a task meet the same world and differ in the policy's randomness. With a folder, finished episodes
    are kept in its journal: the same call continues what was interrupted, and plays again what ended in an error.

    Args:
        seats: where episodes run; they must be of the panel's environment.
        out: folder for summary.json, panel.json, manifest.json, the journal, episodes.parquet and turns.parquet.
        secrets: values that manifest.json must not show of the command line.
        on_progress: called at the start, and when an episode has ended.

    Raises:
        ConfigError: replies are to be admissible commands, which the environment does not list; or the folder holds an
            evaluation on an environment of another identity.
        PanelError: the environment is not the panel's, or its tasks have changed.
        JournalError: the folder holds an evaluation with other settings, or another process writes there.
        TooManyErrors: see ``gather``; what was finished is in the journal.
        DiskFull: so it is then too; the same call continues once there is space.
    """
    planned = _planned(seats, policy, plan)
    about = evaluation_settings(seats, policy, plan)
    with _journal(out, about) as journal, KeptEpisodes(journal) as finished:
        missing = [(task, key) for task, key in planned if finished.is_missing(task, key)]
        on_progress(finished.progress(len(planned)))

        def ended(episode: Episode) -> None:
            finished.take(episode)
            on_progress(finished.progress(len(planned)))

        if missing:
            metered = Metered(policy, finished.meter)
            await gather(seats, metered, missing, max_turns=plan.max_turns, patience=plan.patience, on_episode=ended)
        behind = seats.figures().get("behind_seconds")
        evaluation = _evaluation(plan.panel, planned, finished, about, None if behind is None else float(behind))
        if out is not None:
            _write(out, evaluation, secrets)
    return evaluation


def refuse_other_settings(seats: Seats, policy: Policy, plan: EvaluationPlan, out: Path) -> None:
    """Raise what ``evaluate`` raises of a folder that holds another evaluation, before anything is played."""
    if (out / "episodes.jsonl").exists():
        with _journal(out, evaluation_settings(seats, policy, plan)):
            pass


def _planned(seats: Seats, policy: Policy, plan: EvaluationPlan) -> list[tuple[Task, EpisodeKey]]:
    """The tasks with the key of each episode. Raises ConfigError and PanelError; see ``evaluate``."""
    panel = plan.panel
    if portable_name(seats.facts.name) != portable_name(panel.env):
        raise PanelError(
            f"{panel.id} is a panel of {panel.env}, but the seats are of {seats.facts.name}: open seats of that"
        )
    agent = getattr(policy, "config", None)
    if isinstance(agent, AgentConfig) and (fault := agent.fault_of_choices(seats.facts)):
        raise ConfigError(fault)
    if (check := getattr(policy, "fault_in", None)) is not None and (fault := check(seats.facts)):
        raise ConfigError(fault)
    tasks = panel.find(seats.tasks(panel.split))
    return [(task, EpisodeKey(plan.seed, STAGE, task.id, member)) for task in tasks for member in range(plan.repeats)]


def _evaluation(
    panel: Panel,
    planned: Sequence[tuple[Task, EpisodeKey]],
    finished: KeptEpisodes,
    about: Mapping[str, Any],
    behind: float | None,
) -> Evaluation:
    """The result, once all planned episodes are finished."""
    entries = [finished.finished[task.content, key.member] for task, key in planned]
    rows = [entry.episode for entry in entries]
    lost = finished.meter.spent.minus(spent_on(scored_rows(rows)))
    return Evaluation(
        panel=panel,
        episodes=rows,
        turns=[row for entry in entries for row in entry.turns],
        summary=summarise(rows, about, max(entry.elapsed for entry in entries), lost, behind),
        played=finished.played,
    )


def policy_settings(policy: Policy) -> dict[str, Any]:
    """Settings of a policy besides its name, as plain values: its options, its endpoint, the policy of each role."""
    agent, sampling = (getattr(policy, name, None) for name in ("config", "sampling"))
    members = getattr(policy, "members", {})
    roles = {role: {"policy": member.name, **policy_settings(member)} for role, member in members.items()}
    return {
        "agent": None if agent is None else agent.model_dump(mode="json"),
        "sampling": None if sampling is None else sampling.model_dump(mode="json"),
        "endpoint": getattr(policy, "where", None),
        "priced": getattr(policy, "priced", False),
        **({"roles": roles} if roles else {}),
    }


def evaluation_settings(seats: Seats, policy: Policy, plan: EvaluationPlan) -> dict[str, Any]:
    """Settings: the head of the summary, which an interrupted evaluation must share to continue."""
    panel, experience, search = plan.panel, getattr(policy, "experience", None), getattr(policy, "search", None)
    return {
        "env": panel.env,
        "args": dict(panel.args),
        "wrappers": [dict(wrapper) for wrapper in seats.wrappers],
        KEY: seats.identity.plain(),
        "user": seats.facts.user,
        "split": panel.split,
        "panel": panel.facts,
        "policy": plan.label if plan.label is not None else policy.name,
        "repeats": plan.repeats,
        "seed": plan.seed,
        **policy_settings(policy),
        "max_turns": plan.max_turns,
        **({} if experience is None else {"experience": experience.facts}),
        **({} if search is None else {"search": search}),
    }


@contextmanager
def _journal(out: Path | None, about: Mapping[str, Any]) -> Iterator[Journal | None]:
    """The journal of a folder, which is made if need be; nothing without a folder. Raises DiskFull."""
    if out is None:
        yield None
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        journal = Journal(out / "episodes.jsonl", {"schema_version": RECORDS_VERSION, **about})
        with ExitStack() as stack:
            try:
                stack.enter_context(journal)
            except OtherSettings as error:
                raise _refusal(error) from None
            yield journal
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull(f"{out} cannot be written to ({error}): free some space; the same command continues") from error


def _refusal(error: OtherSettings) -> Exception:
    """The error for a folder with other settings: that of the environment where nothing else differs."""
    if set(error.odd) - {KEY, "wrappers"}:
        return OtherSettings(error.folder, *({**side, KEY: None} for side in (error.began, error.now)))
    began, now = EnvIdentity.of(error.began), EnvIdentity.of(error.now)
    changes = "which environment began it is unknown"
    if began is not None and now is not None:
        changes = listed(differences(began, now))
    return ConfigError(
        f"{error.folder} was begun on another environment: {changes}. One figure over two environments says nothing: "
        "name a new folder with --out, or take the change back"
    )


def _write(out: Path, evaluation: Evaluation, secrets: Collection[str]) -> None:
    evaluation.panel.save(out / "panel.json")
    tables = [table_in(out, schema.table) for schema in (EPISODES, TURNS)]
    write_table(tables[0], evaluation.episodes, EPISODES)
    write_table(tables[1], evaluation.turns, TURNS)
    replace_text(out / "summary.json", json.dumps(evaluation.summary, indent=1, allow_nan=False) + "\n")
    manifest = _manifest([*(out / name for name in _FILES), *tables], without_secrets(sys.argv, secrets))
    replace_text(out / "manifest.json", json.dumps(manifest, indent=1) + "\n")


def _version(name: str) -> str:
    """The version of a package that is loaded; vLLM's build for CPUs is installed under another name than it has."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[name], "__version__", "unknown"))


def _manifest(paths: Sequence[Path], command: Sequence[str]) -> dict[str, Any]:
    """Origin of the files (command, time, packages, machine) and their hashes."""
    # Only what is loaded can have had a part in it, and asking for more would import it.
    packages = ("manyturn", "gymnasium", "numpy", "scipy", "pyarrow", "torch", "transformers", "peft", "vllm")
    files = {}
    for path in paths:
        content = path.read_bytes()
        files[path.name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return {
        "schema_version": 1,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in packages if name in sys.modules},
        "files": files,
    }
