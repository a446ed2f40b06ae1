"""Official ALFWorld games from a folder, as tasks.

Any folder will do: every ``*.tw-pddl`` and every ``*.pddl`` problem below it is a task, in sorted order. Below folders
named ``train``, ``valid_seen`` and ``valid_unseen`` they are the splits train, validation and test, and files elsewhere
are left out; without such folders all files are the split test. As ALFWorld does, games that are marked unsolvable and
games about slices and movable receptacles are left out.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from manyturn.envs.contract.tasks.task import LazyTasks, Task
from manyturn.envs.household.pddl import GameError, load_game
from manyturn.envs.household.problem import Problem
from manyturn.envs.household.text import Grammar
from manyturn.envs.household.world import Tables

FOLDERS = {"train": "train", "valid_seen": "validation", "valid_unseen": "test"}
_OFFICIAL_KINDS = {
    "pick_and_place_simple": "put",
    "look_at_obj_in_light": "light",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "two",
}


class GameTasks(LazyTasks):
    """The games of one split of a folder; a file is read when its task is asked for.

    Args:
        root: the folder.
        files: the split's files.
        split: name of the split.
    """

    def __init__(self, root: Path, files: Sequence[Path], split: str):
        self._split = split
        self.files = {f"{split}/{_short(root, file)}": file for file in files}
        self._ids = list(self.files)

    def __len__(self) -> int:
        return len(self._ids)

    def task_at(self, place: int) -> Task:
        return self._make(self._ids[place])

    def find(self, task_id: str) -> Task | None:
        return self._make(task_id) if task_id in self.files else None

    def _make(self, task_id: str) -> Task:
        file = self.files[task_id]
        sha256, problem, _ = _read(file, _stamp(file))
        return Task(task_id, self._split, {"sha256": sha256}, None, (problem.goal.kind,))


class GameFolder:
    """A folder of games.

    Args:
        root: the folder.
        kinds: only games of these goal kinds; default all.
    """

    def __init__(self, root: str | Path, kinds: Sequence[str] | None = None):
        self.root = Path(root).expanduser().resolve()
        if not self.root.is_dir():
            raise GameError(f"no folder {self.root}: give the folder that holds game.tw-pddl files, such as json_2.1.1")
        files = list(_games(self.root))
        if not files:
            raise GameError(
                f"no playable game.tw-pddl and no *.pddl problem below {self.root}: run alfworld-download, then give "
                "its folder json_2.1.1, or give any folder of such files"
            )
        if kinds is not None:
            files = [file for file in files if _kind(file) in kinds]
        official = any(_official_split(self.root, file) for file in files)
        self._splits: dict[str, GameTasks] = {}
        for split in FOLDERS.values():
            chosen = [f for f in files if (_official_split(self.root, f) if official else "test") == split]
            self._splits[split] = GameTasks(self.root, chosen, split)

    def tasks(self, split: str) -> GameTasks:
        """The tasks of train, validation or test."""
        return self._splits[split]

    def tables(self, task: Task, grammar: Grammar | None) -> Tables:
        """Tables of a task of this folder, in a given grammar or in the file's own."""
        file = self._splits[task.split].files[task.id]
        stamp = _stamp(file)
        if _read(file, stamp)[0] != task.params["sha256"]:
            raise GameError(f"{file} has changed since its task was made: restore the file or list the tasks again")
        return _tables(file, stamp, grammar)


def _stamp(file: Path) -> tuple[int, int]:
    """Changes when the file does."""
    try:
        stat = file.stat()
    except OSError as error:
        raise GameError(f"{file}: cannot be read: {error}; give a folder whose files are complete") from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=64)
def _read(file: Path, _when: tuple[int, int]) -> tuple[str, Problem, Grammar]:
    """Content hash, problem and grammar of a file, remembered for the last files."""
    return hashlib.sha256(file.read_bytes()).hexdigest(), *load_game(file)


@lru_cache(maxsize=64)
def _tables(file: Path, when: tuple[int, int], grammar: Grammar | None) -> Tables:
    _, problem, own = _read(file, when)
    return Tables(problem, grammar or own)


def _short(root: Path, file: Path) -> str:
    """Name of a game file in a task id: its folder for ``game.tw-pddl``, which is always called so."""
    path = file.relative_to(root)
    return (path.parent if path.name == "game.tw-pddl" and len(path.parts) > 1 else path).as_posix()


def _games(root: Path) -> Iterator[Path]:
    """Playable files below a folder, in sorted order on every file system."""
    for file in sorted(root.rglob("*pddl")):
        if file.suffix not in (".pddl", ".tw-pddl") or not file.is_file():
            continue
        if any("movable" in part or "Sliced" in part for part in file.relative_to(root).parts[:-1]):
            continue
        if file.suffix == ".pddl":
            beside_game = file.name == "initial_state.pddl" and any(file.parent.glob("*.tw-pddl"))
            if beside_game or "(problem" not in file.read_text(encoding="utf-8", errors="replace").lower():
                continue
        elif '"solvable": false' in file.read_text(encoding="utf-8", errors="replace"):
            continue
        yield file


def _official_split(root: Path, file: Path) -> str | None:
    """The split that a folder's name gives; the innermost name counts, and the root's own name counts too."""
    for part in reversed((root.name, *file.relative_to(root).parts[:-1])):
        if part in FOLDERS:
            return FOLDERS[part]
    return None


def _kind(file: Path) -> str:
    """The goal kind, from the folder's name where that is ALFWorld's, so that thousands of files stay unread."""
    for part in file.parts[-3:-1]:
        name = part.partition("-")[0]
        if name in _OFFICIAL_KINDS:
            return _OFFICIAL_KINDS[name]
    return _read(file, _stamp(file))[1].goal.kind
