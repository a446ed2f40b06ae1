"""Names of tasks from files: lists of ids, and the tasks of an evaluation at which its policy failed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.records.episode_rows import read_episodes
from manyturn.agents.records.folder_suggestion import near_folder
from manyturn.agents.records.tables import table_in
from manyturn.envs.contract.tasks.env_identity import EnvIdentity, arg_differences, differences, listed
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.envs.contract.tasks.task_filter import TaskChoiceError

FILE, FAILED = "@", "failed:"


def named_tasks(words: str | Sequence[str], env: str) -> tuple[str, ...]:
    """Words with ids in place of ``@FILE`` and ``failed:FOLDER``; other words stay.

    Args:
        words: ``@FILE``: a file of ids, one a line; ``failed:FOLDER``: the tasks of an evaluation, or of a run's, with
            an episode that did not reach the goal. An episode that ended in an error did not fail.
        env: the environment that has the tasks, by its id or as ``FILE.py:Class``.

    Raises:
        TaskChoiceError: a file or folder is not there, or names no task, or the evaluation is of another environment.
    """
    names = list[str]()
    for word in [words] if isinstance(words, str) else words:
        if word.startswith(FILE):
            names += _listed(Path(word.removeprefix(FILE)))
        elif word.startswith(FAILED):
            names += _failed(Path(word.removeprefix(FAILED)), env)
        else:
            names.append(word)
    return tuple(dict.fromkeys(names))


def failed_policies(words: str | Sequence[str]) -> tuple[str, ...]:
    """Names of the policies of the evaluations in ``failed:FOLDER``, each once."""
    return tuple(dict.fromkeys(str(_summary(folder)["policy"]) for folder in _folders(words)))


def failure_remarks(words: str | Sequence[str], now: EnvIdentity, args: Mapping[str, Any]) -> list[str]:
    """A line for each ``failed:FOLDER`` that was played in an environment of another identity, or of an unknown one.

    Args:
        now: the environment that has the tasks.
        args: arguments of its constructor.
    """
    remarks = list[str]()
    for folder in _folders(words):
        summary = _summary(folder)
        was = EnvIdentity.of(summary)
        changes = ["its identity is unknown"] if was is None else differences(was.bare, now.bare)
        if changes := [*changes, *arg_differences(summary.get("args") or {}, args)]:
            remarks.append(
                f"the environment is another than that of {folder} ({listed(changes)}): other tasks may fail"
            )
    return remarks


def _folders(words: str | Sequence[str]) -> list[Path]:
    listed_words = [words] if isinstance(words, str) else words
    return [Path(word.removeprefix(FAILED)) for word in listed_words if word.startswith(FAILED)]


def _listed(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise TaskChoiceError(f"@{file}: {why}: name a file of ids, one a line") from None
    if ids := [line.strip() for line in lines if line.strip()]:
        return ids
    raise TaskChoiceError(f"{file} names no task: write ids, one a line")


def _failed(folder: Path, env: str) -> list[str]:
    summary = _summary(folder)
    if portable_name(str(summary["env"])) != portable_name(env):
        raise TaskChoiceError(
            f"{FAILED}{folder} is an evaluation on {summary['env']}, and these are tasks of {env}: name the folder of "
            f"an evaluation on {env}"
        )
    rows = read_episodes(table_in(_place(folder), "episodes"))
    if ids := [row["task"] for row in rows if row["success"] is False]:
        return ids
    judged = any(row["success"] is not None for row in rows)
    why = "every scored episode reached the goal" if judged else "its environment does not say what succeeds"
    raise TaskChoiceError(f"no task of {folder} failed: {why}")


def _place(folder: Path) -> Path:
    """The folder of the evaluation: of a run, the one in it."""
    for place in (folder, folder / "evaluation"):
        if table_in(place, "episodes").is_file() and (place / "summary.json").is_file():
            return place
    if not folder.exists() and (near := near_folder(folder)):
        raise TaskChoiceError(f"there is no folder {folder}: did you mean {FAILED}{near}?")
    raise TaskChoiceError(f"{folder} holds no finished evaluation: manyturn evaluate POLICY --out {folder}")


def _summary(folder: Path) -> Mapping[str, Any]:
    file = _place(folder) / "summary.json"
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
        assert {"env", "policy"} <= summary.keys()
    except (ValueError, AttributeError, AssertionError):
        raise TaskChoiceError(f"{file} is no summary of an evaluation: evaluate again") from None
    return summary
