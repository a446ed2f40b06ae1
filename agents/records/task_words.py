"""Names of tasks from files: lists of ids, and the tasks of an evaluation at which its policy failed."""

from collections.abc import Sequence
from pathlib import Path

from manyturn.agents.records.episode_rows import read_episodes
from manyturn.agents.records.folder_suggestion import near_folder
from manyturn.agents.records.tables import table_in
from manyturn.envs.contract.tasks.task_choice import TaskChoiceError

FILE, FAILED = "@", "failed:"


def named_tasks(words: str | Sequence[str]) -> tuple[str, ...]:
    """Words with ids in place of ``@FILE`` and ``failed:FOLDER``; other words stay.

    Args:
        words: ``@FILE``: a file of ids, one a line; ``failed:FOLDER``: the tasks of an evaluation, or of a run's, with
            an episode that did not reach the goal. An episode that ended in an error did not fail.

    Raises:
        TaskChoiceError: a file or folder is not there, or names no task.
    """
    names = list[str]()
    for word in [words] if isinstance(words, str) else words:
        if word.startswith(FILE):
            names += _listed(Path(word.removeprefix(FILE)))
        elif word.startswith(FAILED):
            names += _failed(Path(word.removeprefix(FAILED)))
        else:
            names.append(word)
    return tuple(dict.fromkeys(names))


def _listed(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise TaskChoiceError(f"@{file}: {why}: name a file of ids, one a line") from None
    if ids := [line.strip() for line in lines if line.strip()]:
        return ids
    raise TaskChoiceError(f"{file} names no task: write ids, one a line")


def _failed(folder: Path) -> list[str]:
    tables = [table_in(place, "episodes") for place in (folder, folder / "evaluation")]
    table = next((table for table in tables if table.is_file()), None)
    if table is None:
        if not folder.exists() and (near := near_folder(folder)):
            raise TaskChoiceError(f"there is no folder {folder}: did you mean failed:{near}?")
        raise TaskChoiceError(f"{folder} holds no finished evaluation: manyturn evaluate POLICY --out {folder}")
    rows = read_episodes(table)
    if ids := [row["task"] for row in rows if row["success"] is False]:
        return ids
    judged = any(row["success"] is not None for row in rows)
    why = "every scored episode reached the goal" if judged else "its environment does not say what succeeds"
    raise TaskChoiceError(f"no task of {folder} failed: {why}")
