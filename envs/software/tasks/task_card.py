"""The card of a file of software tasks: what it holds, where it is from, how it was made, what became of the rest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.software.mutation.candidates import SPLITS
from manyturn.envs.software.mutation.fault_validation import MOST_BROKEN, RUNS, VALID, Baseline
from manyturn.envs.software.mutation.search_checkpoint import FaultTrial
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.tasks.task_entry import DIFFICULTIES, Entry
from manyturn.envs.software.tasks.task_sources import LEARNT

_ABOUT = f"""\
Each task is a released library with a fault, or two or three, put into its code. The library's own tests tell whether
it is fixed. The file holds no line of the libraries: only places, what stands there instead, and names of tests.

A fault makes a task if at least one test fails because of it, no more than {MOST_BROKEN:.0%} do, others still pass, no
run hangs, and {RUNS} runs in a sandbox without a network agree, each in a process of its own. So the task as it is
given fails, and the released file passes. Of faults in one function that break the same tests one is kept. Only tests
of the files that call an edited function are run, and so named in a task. In a hard task every fault breaks a test by
itself.

The text that an agent is given is synthetic: a template, and what failing tests' errors said. Easy tasks name a failing
test; medium ones do not; hard ones have several faults. A function's tasks are all in one split, and those of the
libraries held out are all in `test`."""

_SPLITS = "## Splits and difficulties"
_LEFT_OUT = """\
Left out are tasks that a memory of the visible tests passes, as far as they were measured. `unreached = true` of the
environment's arguments brings them back."""


def card(entries: Sequence[Entry], tried: Sequence[FaultTrial], baselines: Mapping[str, Baseline], seed: int) -> str:
    """The card as Markdown.

    Args:
        entries: the tasks.
        tried: every fault that was tried, those that make no task too.
        baselines: of the libraries, by name.
    """
    names = sorted({entry.library for entry in entries})
    return (
        "\n\n".join(
            (
                f"# {len(entries)} software tasks of {len(names)} libraries",
                _ABOUT,
                _splits(entries),
                "## Libraries",
                _table(
                    ("library", "licence", "held out", "tests", "tasks", "tried", "made a task", "seconds"),
                    (_of_library(name, entries, tried, baselines) for name in names),
                ),
                "Seconds are those of all runs of tests.",
                "## Operators",
                _table(
                    ("operator", "edits in tasks", "tried alone", "made a task"),
                    _of_operators(entries, tried),
                ),
                "## What became of the faults",
                _table(("outcome", "faults"), Counter(one.verdict.reason for one in tried).most_common()),
                f"Made with seed {seed}.",
            )
        )
        + "\n"
    )


def recount(file: Path, entries: Sequence[Entry]) -> None:
    """Bring the card of a file of tasks up to what was measured since; nothing happens where it has no card."""
    place = file.with_suffix(".md")
    if not place.is_file():
        return
    before, head, rest = place.read_text(encoding="utf-8").partition(_SPLITS)
    others = rest.partition("\n## ")[2]
    if head:
        replace_text(place, f"{before}{_splits(entries)}\n\n## {others}")


def _splits(entries: Sequence[Entry]) -> str:
    heads = ("split", *DIFFICULTIES, "tasks", "left out by default")
    return "\n\n".join((_SPLITS, _table(heads, (_of_split(split, entries) for split in SPLITS)), _LEFT_OUT))


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _of_split(split: str, entries: Sequence[Entry]) -> list[object]:
    counts = Counter(entry.difficulty for entry in entries if entry.split == split)
    left_out = sum(entry.split == split and entry.reached == 0 for entry in entries) if split in LEARNT else 0
    return [f"`{split}`", *(counts[difficulty] for difficulty in DIFFICULTIES), counts.total(), left_out]


def _of_library(
    name: str, entries: Sequence[Entry], tried: Sequence[FaultTrial], baselines: Mapping[str, Baseline]
) -> list[object]:
    release, some = library(name), [one for one in tried if one.fault.library == name]
    return [
        f"{name} {release.version}",
        release.licence,
        "yes" if release.held_out else "",
        len(baselines[name].steady),
        sum(entry.library == name for entry in entries),
        len(some),
        _share(some),
        round(sum(one.verdict.seconds for one in some)),
    ]


def _of_operators(entries: Sequence[Entry], tried: Sequence[FaultTrial]) -> list[list[object]]:
    used = Counter(edit.operator for entry in entries for _, edit in entry.edits)
    alone: dict[str, list[FaultTrial]] = {}
    for one in tried:
        if len(one.fault.edits) == 1:
            alone.setdefault(one.fault.edits[0][1].operator, []).append(one)
    return [[name, used[name], len(some), _share(some)] for name, some in sorted(alone.items())]


def _share(some: Sequence[FaultTrial]) -> str:
    return f"{sum(one.verdict.reason == VALID for one in some) / len(some):.0%}" if some else ""
