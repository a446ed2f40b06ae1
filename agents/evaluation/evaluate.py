"""Evaluation: a policy's success on a pinned panel of tasks, with intervals, tables and a journal to continue from."""

import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
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
from manyturn.agents.records.episode_rows import EPISODES, TURNS, Row
from manyturn.agents.records.episode_rows import SCHEMA_VERSION as RECORDS_VERSION
from manyturn.agents.records.journal import Journal
from manyturn.agents.records.tables import replace_table
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.durable import replace_text
from manyturn.envs.contract.options import ConfigError
from manyturn.envs.contract.panel import Panel, PanelError, overlap, portable_name
from manyturn.envs.hosting.seats import Seats

STAGE = "evaluate"
_FILES = ("panel.json", "summary.json")


class NotHeldOut(ValueError):
    """The policy was trained on tasks of the panel, so its results there say nothing about new tasks."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What was found.

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


def held_out_guard(panel: Panel, seen: Collection[str]) -> None:
    """Refuse a panel that the policy was trained on.

    Args:
        seen: contents (``Task.content``) of the tasks that the policy has learnt from.

    Raises:
        NotHeldOut: a problem of the panel is among them, be it under another id.
    """
    known = overlap(panel, seen)
    if known:
        raise NotHeldOut(
            f"the policy was trained on {len(known)} of the {len(panel)} tasks of {panel.id}, first on {known[0]!r}: "
            "success there would not show how it does on new tasks. Evaluate on another split, or on a panel of tasks "
            "that it has not seen"
        )


async def evaluate(
    seats: Seats,
    policy: Policy,
    panel: Panel,
    *,
    repeats: int,
    seed: int,
    max_turns: int,
    patience: Patience | None = None,
    label: str | None = None,
    out: Path | None = None,
    secrets: Collection[str] = (),
    on_progress: Callable[[Progress], object] = lambda progress: None,
) -> Evaluation:
    """Play each task of a panel ``repeats`` times.

    All repeats of a task meet the same world and differ in the policy's randomness. With a folder, finished episodes
    are kept in its journal: the same call continues what was interrupted, and plays again what ended in an error.

    Args:
        seats: where episodes run; they must be of the panel's environment.
        repeats: attempts at each task; pass@k needs k of them.
        seed: decides worlds and sampling noise.
        max_turns: for environments without a limit of their own.
        patience: what to do about errors; None: the usual.
        label: the name of the policy in tables, and by which an interrupted evaluation knows it again; it must
            differ where the weights differ. Default: the policy's name.
        out: folder for summary.json, panel.json, manifest.json, the journal, and the tables of episodes and turns, in
            Parquet if pyarrow is installed.
        secrets: what manifest.json must not show of the command line.
        on_progress: called at the start, and when an episode has ended.

    Raises:
        ConfigError: replies are to be admissible commands, which the environment does not list.
        PanelError: the environment is not the panel's, or its tasks have changed.
        JournalError: the folder holds an evaluation with other settings, or another process writes there.
        TooManyErrors: see ``gather``; what was finished is in the journal.
    """
    if repeats < 1:
        raise ValueError(f"repeats counts the attempts at each task, so it is at least 1, not {repeats}")
    if portable_name(seats.name) != portable_name(panel.env):
        raise PanelError(f"{panel.id} is a panel of {panel.env}, but the seats are of {seats.name}: open seats of that")
    agent = getattr(policy, "config", None)
    if isinstance(agent, AgentConfig) and (fault := agent.fault_of_choices(seats)):
        raise ConfigError(fault)
    tasks = panel.find(seats.tasks(panel.split))
    plan = [(task, EpisodeKey(seed, STAGE, task.id, member)) for task in tasks for member in range(repeats)]
    about = _about(seats, policy, panel, repeats, seed, max_turns, label)

    with _journal(out, about) as journal, KeptEpisodes(journal) as kept:
        missing = [(task, key) for task, key in plan if kept.is_missing(task, key)]
        on_progress(kept.progress(len(plan)))

        def ended(episode: Episode) -> None:
            kept.take(episode)
            on_progress(kept.progress(len(plan)))

        if missing:
            metered, usual = Metered(policy, kept.meter), patience or Patience()
            await gather(seats, metered, missing, max_turns=max_turns, patience=usual, on_episode=ended)
        ordered = [kept.finished[task.content, key.member] for task, key in plan]
        rows = [one.episode for one in ordered]
        lost = kept.meter.spent.minus(spent_on(scored_rows(rows)))
        evaluation = Evaluation(
            panel=panel,
            episodes=rows,
            turns=[row for one in ordered for row in one.turns],
            summary=summarise(rows, about, max(one.elapsed for one in ordered), lost),
            played=kept.played,
        )
        if out is not None:
            _write(out, evaluation, secrets)
    return evaluation


def _about(
    seats: Seats, policy: Policy, panel: Panel, repeats: int, seed: int, max_turns: int, label: str | None
) -> dict[str, Any]:
    """What was asked for: the head of the summary, and what an interrupted evaluation must have in common."""
    agent, sampling = (getattr(policy, name, None) for name in ("config", "sampling"))
    return {
        "env": panel.env,
        "args": dict(panel.args),
        "wrappers": [dict(wrapper) for wrapper in seats.wrappers],
        "user": seats.user,
        "split": panel.split,
        "panel": {"id": panel.id, "hash": panel.hash, "n_tasks": len(panel)},
        "policy": label if label is not None else policy.name,
        "repeats": repeats,
        "seed": seed,
        "agent": None if agent is None else agent.model_dump(mode="json"),
        "sampling": None if sampling is None else sampling.model_dump(mode="json"),
        "endpoint": getattr(policy, "where", None),
        "max_turns": max_turns,
    }


def _journal(out: Path | None, about: Mapping[str, Any]) -> Journal | nullcontext[None]:
    """The journal of a folder, which is made if need be; nothing without a folder."""
    if out is None:
        return nullcontext()
    out.mkdir(parents=True, exist_ok=True)
    return Journal(out / "episodes.jsonl", {"schema_version": RECORDS_VERSION, **about})


def _write(out: Path, evaluation: Evaluation, secrets: Collection[str]) -> None:
    evaluation.panel.save(out / "panel.json")
    tables = [
        replace_table(out, rows, schema)
        for rows, schema in ((evaluation.episodes, EPISODES), (evaluation.turns, TURNS))
    ]
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
    """By what, when and where the files were made, and their hashes."""
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
