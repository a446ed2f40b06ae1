"""The report's document: its head, a row of columns for each episode, and their traces in chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.agents.evaluation.paired_comparison import Evaluated, read_evaluation, same_tasks
from manyturn.agents.records.folder_suggestion import near_folder
from manyturn.agents.records.tables import RecordsError, table_in
from manyturn.report.comparison import comparison_head
from manyturn.report.evaluation import evaluation_head
from manyturn.report.report_head import Head, Plain, ReportError, number
from manyturn.report.run import evaluations_in, run_head
from manyturn.report.selection import quotas, spans, spread_order, whole_groups
from manyturn.report.traces import File, Played, Trace, count, played

FORMAT = 1
CHUNK = 25
ENCLOSED, SERVED = 1_000, 20_000
# Turns' files of a report in a single page, in bytes: their compression comes to about what the page's does.
_ROOM = 10_000_000
_EVALUATION = "evaluation"
_OF_TASK = ("split", "difficulty", "tags")
_COPIED = (*_OF_TASK, "stage", "member", "success", "ending", "cause", "attempts", "turns", "inner_turns")
COLUMNS = ("source", "task", *_COPIED, "return", "invalid", "seconds", "credit")
"""Columns of the document's episodes. Credit is the mean over an episode's turns, null where there is none."""


class Pick(NamedTuple):
    """Episodes that a report carries: rows of one pair of files, and the source that they belong to.

    Attributes:
        names: content -> id of tasks which the report calls by another id than the files.
    """

    played: Played
    rows: Sequence[int]
    source: int = 0
    names: Mapping[str, str] = {}


@dataclass(frozen=True)
class Document:
    """A report without the page around it.

    Attributes:
        plain: the document as plain values for JSON, the columns of E episodes included.
        places: for each of the E episodes, where its turns are.
    """

    plain: Plain
    places: Sequence[tuple[Played, int]] = field(repr=False)

    def __len__(self) -> int:
        """Number of chunks."""
        return -(-len(self.places) // CHUNK)

    def chunk(self, index: int) -> list[Trace]:
        """The traces of up to ``chunk_size`` episodes, read now; raises IndexError if there is no such chunk."""
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} chunks of episodes, counted from 0: {index} is none of them")
        return [of.trace(row) for of, row in self.places[index * CHUNK : (index + 1) * CHUNK]]

    def chunks(self) -> Iterator[list[Trace]]:
        return (self.chunk(index) for index in range(len(self)))


def evaluation_in(path: Path) -> Evaluated | None:
    """The finished evaluation that a folder holds; None where it holds a run.

    Raises:
        ReportError, CompareError: it holds neither, or there is none.
    """
    if not path.is_dir():
        near = near_folder(path)
        hint = f"did you mean {near}?" if near else "name the folder of a run or of an evaluation"
        raise ReportError(f"there is no folder {path}: {hint}")
    if (path / "config.toml").is_file():
        return None
    return read_evaluation(path)


def document_of(path: Path, live: bool = False) -> Document:
    """The document of a run, be it finished or not, or of a finished evaluation.

    Args:
        path: the folder.
        live: carry the newest 20,000 episodes in place of 1,000 from all over the run, and skip files that
            cannot be read yet, with a warning.

    Raises:
        ReportError, CompareError, RecordsError, ConfigError: the folder holds neither, or a damaged one.
    """
    if (evaluated := evaluation_in(path)) is None:
        head = run_head(path)
        pairs = _of_run(path)
    else:
        head = evaluation_head(evaluated)
        pairs = [_of_evaluation(evaluated.folder)]
    return _document(head, _picks(pairs, live, head.warnings))


def comparison_document(paths: Sequence[Path], shared: bool = False) -> Document:
    """The document of two or more evaluations, or runs, whose evaluations are meant then, against the first.

    Args:
        shared: compare over the tasks that all have, where panels differ.

    Raises:
        CompareError, RecordsError: they cannot be compared, or one is damaged.
    """
    evaluations = [read_evaluation(path) for path in paths]
    head = comparison_head(evaluations, shared)
    tasks = same_tasks(evaluations, shared=shared)
    sides = [_of_evaluation(evaluated.folder).read() for evaluated in evaluations]
    # A task is left out for all policies or for none, so that each episode has those to compare it with.
    groups: dict[str, list[tuple[int, int]]] = {content: [] for content in tasks}
    for source, side in enumerate(sides):
        for row, content in enumerate(side.episodes.column("content")):
            if content in groups:
                groups[content].append((source, row))
    total = sum(map(len, groups.values()))
    chosen = whole_groups(list(groups.values()), _most(total, sum(side.turns_file.size for side in sides)))
    if len(chosen) < total:
        head.warnings.append(f"shows {len(chosen):,} of {total:,} episodes: all policies on some of the tasks")
    picks = [Pick(side, [row for s, row in chosen if s == source], source, tasks) for source, side in enumerate(sides)]
    return _document(head, picks)


def waiting_document(path: Path, why: str) -> Document:
    """Placeholder of a live view before the first episode."""
    name = path.resolve().name
    return _document(Head("run", name, [name], done=False, warnings=[why]), [])


class _Pair(NamedTuple):
    """The files of a step's episodes, or of an evaluation's, and what to call them.

    Attributes:
        env: the environment of an evaluation, where a run has several.
    """

    name: str
    episodes: Path
    turns: Path
    env: str = ""

    def read(self) -> Played:
        return played(File.at(self.episodes), File.at(self.turns))

    def names(self, part: Played) -> dict[str, str]:
        """Content -> id of each task as the run calls it, where the files have the environment's own."""
        if not self.env:
            return {}
        rows = zip(part.episodes.column("content"), part.episodes.column("task"), strict=True)
        return {content: f"{self.env}/{task}" for content, task in rows}


def _of_evaluation(folder: Path, env: str = "") -> _Pair:
    return _Pair(_EVALUATION, table_in(folder, "episodes"), table_in(folder, "turns"), env)


def _of_run(run: Path) -> list[_Pair]:
    """The steps in order, then the evaluation."""
    files = {file.stem.removeprefix("step_"): file.name for file in (run / "episodes").glob("step_*.parquet")}
    steps = sorted((int(step), name) for step, name in files.items() if step.isdecimal())
    pairs = [_Pair(str(step), run / "episodes" / name, run / "turns" / name) for step, name in steps]
    folders = evaluations_in(run)
    return [*pairs, *(_of_evaluation(one, "" if one.name == _EVALUATION else one.name) for one in folders)]


def _picks(pairs: Sequence[_Pair], live: bool, warnings: list[str]) -> list[Pick]:
    """Episodes that there is room for, in the order of the pairs; warnings say what is missing."""
    rows: dict[_Pair, int] = {}
    size = 0
    for pair in pairs:
        with _passing_over(live, warnings):
            size += File.at(pair.turns).size
            rows[pair] = count(File.at(pair.episodes))
    total = sum(rows.values())
    order = _by_importance(list(rows), live)
    limit, sure = (SERVED, 1) if live else (_most(total, size), 4)
    given = quotas([rows[pair] for pair in order], limit, sure)
    chosen: dict[_Pair, Pick] = {}
    for pair, quota in zip(order, given, strict=True):
        with _passing_over(live, warnings):
            if quota:
                part = pair.read()
                chosen[pair] = Pick(part, whole_groups(part.groups, quota), names=pair.names(part))
    shown = sum(len(pick.rows) for pick in chosen.values())
    if shown < total:
        steps = [int(pair.name) for pair in chosen if pair.name != _EVALUATION]
        of = f" of steps {spans(steps)}" + " and of the evaluation" * (_EVALUATION in [p.name for p in chosen])
        warnings.append(f"shows {shown:,} of {total:,} episodes, in complete groups{of if steps else ''}")
    return [chosen[pair] for pair in pairs if pair in chosen]


@contextmanager
def _passing_over(live: bool, warnings: list[str]) -> Iterator[None]:
    """While a run still writes, a file that cannot be read is a warning and no error."""
    try:
        yield
    except (RecordsError, ReportError) as error:
        if not live:
            raise
        warnings.append(str(error))


def _by_importance(pairs: Sequence[_Pair], live: bool) -> list[_Pair]:
    """The evaluation; then the newest steps while it is watched, or else steps from all over the run."""
    steps = [pair for pair in pairs if pair.name != _EVALUATION]
    order = steps[::-1] if live else [steps[place] for place in spread_order(len(steps))]
    return [*(pair for pair in pairs if pair.name == _EVALUATION), *order]


def _most(episodes: int, size: int) -> int:
    """Number of episodes that a single page carries, for turns of ``size`` bytes in their files."""
    return max(1, min(ENCLOSED, _ROOM * episodes // max(1, size)))


def _document(head: Head, picks: Iterable[Pick]) -> Document:
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    places: list[tuple[Played, int]] = []
    for pick in picks:
        values = pick.played.episodes.take(pick.rows).columns()
        places += ((pick.played, row) for row in pick.rows)
        columns["source"] += [pick.source] * len(pick.rows)
        ids = zip(values["content"], values["task"], strict=True)
        columns["task"] += [pick.names.get(content, task) for content, task in ids]
        for name in _COPIED:
            columns[name] += values[name]
        columns["return"] += map(number, values["return"])
        columns["invalid"] += values["invalid_actions"]
        took = zip(values["seconds_policy"], values["seconds_env"], strict=True)
        columns["seconds"] += [number(policy + env, 4) for policy, env in took]
        columns["credit"] += [pick.played.credit[row] for row in pick.rows]
    return Document({"format": FORMAT, **vars(head), "episodes": columns, "chunk_size": CHUNK}, places)
