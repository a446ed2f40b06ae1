"""A run's folder: configuration, metrics, episodes, checkpoints. One folder has one writer."""

import contextlib
import fcntl
import itertools
import json
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TextIO

from numpy.typing import ArrayLike

from manyturn.agents.play.episode import Episode
from manyturn.agents.records.episode_buffer import remove_unnamed
from manyturn.agents.records.episode_log import FULL, DiskFull
from manyturn.agents.records.episode_rows import write_episodes, write_turns
from manyturn.agents.trajectories.token_files import SUFFIX, write_ledgers
from manyturn.envs.contract.atomic_files import clear_leftovers, replace_text
from manyturn.envs.contract.credential_mask import masked_value
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig, parse_config, part_origins, read_toml, to_toml
from manyturn.trainers.record.metrics import checked

_EXPLORATION = ("exploration", "estimator", "critic")  # phases of metrics
_TABLES = ("episodes", "turns")
_LEDGERS = "ledgers"
SIGNATURE = "signature"  # of the code that the configuration names
_ORIGIN = "# "  # begins the notes at the head of config.toml
_FOLDERS = (*_TABLES, "journal", "checkpoints", ".")  # a folder comes after those in it
_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


class RunFolderError(RuntimeError):
    """The folder cannot be used; the text says what would do."""


class RunFolder:
    """Opens a folder for writing, as a context manager.

    Args:
        path: the folder; made if missing.
        resume: whether the folder must hold a run already, or must not.
    """

    def __init__(self, path: Path, *, resume: bool):
        self.path, self._resume = path, resume
        self._lock: TextIO | None = None
        self._unsaved: str | None = None
        self._saved: object = None

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def __enter__(self) -> Self:
        if self._resume and not self.config_file.is_file():
            raise RunFolderError(no_run(self.path))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / "lock").open("w")
        except OSError as error:
            if error.errno in FULL:
                raise DiskFull(self._cannot_write(error)) from error
            raise RunFolderError(f"{self.path}: {error.strerror}: choose another folder") from error
        try:
            self._claim(self._lock)
            for name in _FOLDERS:
                (self.path / name).mkdir(exist_ok=True)
                clear_leftovers(self.path / name)
            if (self.path / _LEDGERS).is_dir():
                clear_leftovers(self.path / _LEDGERS)
        except BaseException:
            self._lock.close()
            raise
        return self

    def _claim(self, lock: TextIO) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunFolderError(f"{self.path} is being written by another process: wait for it, or stop it") from None
        if not self._resume and self.config_file.is_file():
            raise RunFolderError(
                f"{self.path} holds a run already: name another folder with --out, or continue it with "
                f"manyturn train --resume {self.path}"
            )

    def __exit__(self, *exception: object) -> None:
        assert self._lock is not None
        self._lock.close()
        if not self.config_file.is_file():
            self._leave_nothing()

    def _leave_nothing(self) -> None:
        """Remove the folder of a run that could not begin, if nothing else is in it."""
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for name in _FOLDERS:
                (self.path / name).rmdir()

    def write_config(self, config: RunConfig) -> None:
        notes = "".join(f"{_ORIGIN}{name} is registered by {where}\n" for name, where in part_origins(config).items())
        replace_text(self.config_file, notes + to_toml(config))

    def read_config(self) -> RunConfig:
        return read_config(self.path)

    def log(self, line: dict[str, Any]) -> dict[str, Any]:
        """Append a line of metrics and return it as it was written.

        A figure that is not finite is None, and secrets in texts are masked.
        """
        finite = {n: None if isinstance(v, float) and not math.isfinite(v) else v for n, v in checked(line).items()}
        finite = masked_value(finite)
        with self.writing(), self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite, allow_nan=False) + "\n")
        return finite

    def check_new(self) -> None:
        """Raise RunFolderError where steps were recorded though there is no checkpoint: they would be lost."""
        if any(line["step"] > 0 for line in read_metrics(self.path)) or any((self.path / "turns").glob("step_*")):
            raise RunFolderError(
                f"{self.path} has steps but no checkpoint: restore {self.checkpoints}, or start again in another folder"
            )

    def rewind(self, step: int, *, explored: bool = True, updates: int | None = None) -> None:
        """Remove what was written after a step, a torn last line too: it will be written again.

        Args:
            explored: whether the exploration before the first step is kept.
            updates: of the warm-up, whose later lines are removed too; None: it is over.
        """
        lines = [line for line in read_metrics(self.path) if line["step"] <= step]
        remaining = [line for line in lines if explored or line["phase"] not in _EXPLORATION]
        if updates is not None:
            remaining = [line for line in remaining if line.get("updates", 0) <= updates]
        if lost := sorted(set(range(1, step + 1)) - {line["step"] for line in remaining if line["phase"] == "train"}):
            print(f"{self.metrics_file} has lost its lines of {len(lost)} steps, the first {lost[0]}", file=sys.stderr)
        replace_text(self.metrics_file, "".join(json.dumps(line) + "\n" for line in remaining))
        for table in (*_TABLES, _LEDGERS):
            for file in (self.path / table).glob("step_*"):
                if int(file.name.removeprefix("step_").partition(".")[0]) > step:
                    file.unlink()

    def write_step(
        self, step: int, episodes: Sequence[Episode], columns: Mapping[str, ArrayLike], *, tokens: bool = False
    ) -> None:
        """Keep what was played in a step: E episodes, and their K turns with further columns of K numbers.

        Args:
            tokens: keep their ledgers too.
        """
        turns, rows = step_tables(self.path, step)
        with self.writing():
            if tokens:
                ledgers = step_ledgers(self.path, step)
                ledgers.parent.mkdir(exist_ok=True)
                write_ledgers(ledgers, episodes)
            write_turns(turns, episodes, columns)
            write_episodes(rows, episodes)

    def journal_file(self, step: int, round: int = 0) -> Path:
        """The file with the episodes of a round of a step, kept until the step is part of a checkpoint.

        Step 0 is the exploration before the first step.
        """
        return self.path / "journal" / f"step_{step:06d}_{round:02d}.jsonl"

    def guidance_file(self, step: int, round: int = 0) -> Path:
        """The file with the texts that episodes of a round read; by its name it stays when later rounds are removed."""
        return self.path / "journal" / f"step_{step:06d}_{round:02d}-guidance.jsonl"

    def choice_file(self, step: int) -> Path:
        """The file with the groups that a step learns from, where these do not follow from their tasks."""
        return self.path / "journal" / f"step_{step:06d}_choice.jsonl"

    def answer_file(self, step: int | None) -> Path:
        """The file with the answers of endpoints in a step, kept until the step is part of a checkpoint.

        Args:
            step: None for answers outside of steps, as on held-out tasks and in the warm-up, which stay.
        """
        return self.path / "answers" / ("other.jsonl" if step is None else f"step_{step:06d}.jsonl")

    def forget_journals_after(self, step: int, round: int) -> None:
        """Remove the journals of later rounds and steps."""
        here = self.journal_file(step, round)
        for file in here.parent.glob("step_*.jsonl"):
            if file.name > here.name:
                file.unlink()

    def set_aside(self, step: int) -> None:
        """Make room for a run that goes on from this step under another configuration.

        Episodes that the other one has played for the next steps are forgotten; its evaluation and summary keep their
        places under the number of its last step.
        """
        self.forget_journals_after(0, 0)
        for finished in (self.path / "evaluation", self.path / "summary.json"):
            name, end = f"{finished.stem}-step_{step:06d}", finished.suffix
            if finished.exists():
                names = itertools.chain([name + end], (f"{name}-{number}{end}" for number in itertools.count(2)))
                finished.rename(next(path for path in map(self.path.joinpath, names) if not path.exists()))

    def withdraw(self) -> None:
        """Forget a run that was refused before it had done anything, so that its folder is free again."""
        if not self._resume and not self.metrics_file.stat().st_size:
            self.metrics_file.unlink()
            self.config_file.unlink(missing_ok=True)
            (self.path / SIGNATURE).unlink(missing_ok=True)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Names the fix when the disk refuses. Raises DiskFull."""
        try:
            yield
        except OSError as error:
            raise DiskFull(self._cannot_write(error)) from error

    def check_room(self) -> None:
        """Raise DiskFull where less than twice the newest checkpoint is free: another might not fit."""
        newest = max(self.checkpoints.glob("step_*"), default=None)
        if newest is None:
            return
        size = sum(file.stat().st_size for file in newest.rglob("*") if file.is_file())
        free = shutil.disk_usage(self.path).free
        if free < 2 * size:
            raise DiskFull(self._cannot_write(f"{_bytes(free)} are free, {_bytes(2 * size)} are needed"))

    def is_saved(self, state: object) -> bool:
        """True if the newest checkpoint is of this state."""
        return state == self._saved

    def saved(self, step: int, state: object) -> None:
        """A checkpoint of this step is on the disk: the journals up to it have done their service."""
        self._unsaved, self._saved = None, state
        for name in ("journal", "answers"):
            for file in (self.path / name).glob("step_*.jsonl"):
                if int(file.stem.split("_")[1]) <= step:
                    file.unlink()
        remove_unnamed(self.path)

    def not_saved(self, error: Exception, *, last: bool) -> None:
        """A checkpoint could not be written; the one before it stays.

        Args:
            last: whether no other save would follow.

        Raises:
            DiskFull: it is the last, or the second that failed in a row.
        """
        clear_leftovers(self.checkpoints)
        if last or self._unsaved is not None:
            raise DiskFull(self._cannot_write(error)) from error
        self._unsaved = str(error)
        print(f"a checkpoint could not be written and is left out once: {error}", file=sys.stderr)

    def _cannot_write(self, why: object) -> str:
        fix = "free some space" if not isinstance(why, OSError) or why.errno in FULL else "make it writable"
        return (
            f"{self.path} cannot be written to ({why}): {fix}, then continue with manyturn train --resume {self.path}"
        )


def step_tables(run: Path, step: int) -> tuple[Path, Path]:
    """The tables of the turns and the episodes of a step."""
    name = f"step_{step:06d}.parquet"
    return run / "turns" / name, run / "episodes" / name


def newest_state(run: Path) -> dict[str, Any]:
    """The plain values of a run's newest checkpoint, which nothing is continued from; empty without one."""
    file = max(run.glob("checkpoints/step_*/state.json"), default=None)
    return {} if file is None else json.loads(file.read_text(encoding="utf-8"))


def step_ledgers(run: Path, step: int) -> Path:
    """The file with the ledgers of a step's episodes, where they are kept."""
    return run / _LEDGERS / f"step_{step:06d}{SUFFIX}"


def no_run(path: Path) -> str:
    return f"{path} holds no run: it has no config.toml; name a folder that manyturn train has written"


def read_config(run: Path) -> RunConfig:
    """The configuration of a run."""
    if not (run / "config.toml").is_file():
        raise RunFolderError(no_run(run))
    try:
        return parse_config(read_toml(run / "config.toml"))
    except ConfigError as error:
        raise ConfigError(f"{run}/config.toml: {error}{_origin_in(run / 'config.toml', str(error))}") from None


def _origin_in(file: Path, error: str) -> str:
    """The module that registered a part which is unknown now, by the notes in a run's configuration."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for note in (line.removeprefix(_ORIGIN) for line in lines if line.startswith(_ORIGIN)):
        name, _, where = note.partition(" is registered by ")
        if f" {name!r};" in error:
            return f". {name} was registered by {where}: make it a plugin, or install its package (docs/plugins.md)"
    return ""


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics; a last line that was torn by a crash is left out."""
    file = run / "metrics.jsonl"
    if not file.is_file():
        return []
    texts = file.read_text(encoding="utf-8").splitlines()
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError as error:
            if number < len(texts):
                raise RunFolderError(
                    f"{file}, line {number} is damaged ({error}): remove it, or restore the file"
                ) from None
    return lines


def _bytes(count: int) -> str:
    """A size in the unit that shows at least one digit of it."""
    unit, size = next(((unit, size) for unit, size in _UNITS if count >= size), ("bytes", 1))
    return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
