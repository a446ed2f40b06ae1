"""Our text worlds against the engines of others: processor time of a step on one core.

    python -m benchmarks.speed.engines [--only ScienceWorld]     about eight minutes on a quiet machine
    python -m benchmarks.speed.engines --page                    the tables of docs/speed.md from the result

A random policy plays episodes once, untimed, to fix the commands. Then the same commands are timed in blocks, without
resets: processor time of the process and of every process below it, since two engines work in Java. The first three
blocks warm up; a figure is the median of the others. Each row has a process of its own, on one core, and its Java too.
A run that was interrupted goes on with the next row.

Our step is the full one of Gymnasium, with the list of commands. An engine's raw step is the least that an agent needs:
text, score and end; its list of commands, where it has to be asked for, has a row of its own. Java runs as our adapters
start it, which takes less processor time than the packages' own way. Engines that are not installed are named.
"""

import argparse
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil

from benchmarks.kit.journal import Journal
from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, ROOT, origin, refuse, write
from benchmarks.kit.table import table
from benchmarks.speed.engine_games import PACKAGES, Game, alfworld, ours, scienceworld, textworld, textworld_express
from manyturn.envs.benchmarks.java_process import java_program
from manyturn.envs.contract.registration.env_registry import NeedsSetup

OUT, PAGE = RESULTS / "engines.json", ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- figures: python -m benchmarks.speed.engines --page -->", "<!-- end of engines -->"
_WARM_UP = 3  # blocks: Java compiles what it runs often, meanwhile
ROWS: dict[str, Callable[[], Game]] = {
    "Laboratory small": lambda: ours("manyturn/Laboratory-v0", "small"),
    "Laboratory medium": lambda: ours("manyturn/Laboratory-v0", "medium"),
    "Laboratory long": lambda: ours("manyturn/Laboratory-v0", "long"),
    "Treasure w2-o3-q4": lambda: ours("manyturn/Treasure-v0", "w2-o3-q4"),
    "Treasure w4-o6-q8": lambda: ours("manyturn/Treasure-v0", "w4-o6-q8"),
    "Treasure coin": lambda: ours("manyturn/Treasure-v0", "coin"),
    "Cooking hard": lambda: ours("manyturn/Cooking-v0", "hard"),
    "Household easy": lambda: ours("manyturn/Household-v0", "easy"),
    "ScienceWorld": lambda: scienceworld(listed=False),
    "ScienceWorld, with its list": lambda: scienceworld(listed=True),
    "TextWorld w2-o3-q4": lambda: textworld("w2-o3-q4", listed=False),
    "TextWorld w2-o3-q4, with its list": lambda: textworld("w2-o3-q4", listed=True),
    "TextWorld w4-o6-q8, with its list": lambda: textworld("w4-o6-q8", listed=True),
    "TextWorld cooking, with its list": lambda: textworld("cooking", listed=True),
    "TextWorld-Express coin": lambda: textworld_express("coin"),
    "TextWorld-Express cookingworld": lambda: textworld_express("cookingworld"),
    "ALFWorld": alfworld,
}


class Pair(NamedTuple):
    """A world of ours, the engine that plays the like, and how many times faster ours is meant to be."""

    ours: str
    engine: str
    goal: float | None = None


PAIRS = (
    Pair("Laboratory small", "ScienceWorld", 300),
    Pair("Laboratory medium", "ScienceWorld", 300),
    Pair("Laboratory long", "ScienceWorld", 300),
    Pair("Laboratory long", "ScienceWorld, with its list"),
    Pair("Treasure w2-o3-q4", "TextWorld w2-o3-q4"),
    Pair("Treasure w2-o3-q4", "TextWorld w2-o3-q4, with its list", 200),
    Pair("Treasure w4-o6-q8", "TextWorld w4-o6-q8, with its list", 200),
    Pair("Cooking hard", "TextWorld cooking, with its list", 200),
    Pair("Treasure coin", "TextWorld-Express coin", 10),
    Pair("Cooking hard", "TextWorld-Express cookingworld", 10),
    Pair("Household easy", "ALFWorld"),
)


def drawn(game: Game) -> list[list[str]]:
    """A random policy's commands in each episode."""
    episodes = []
    for number in range(game.episodes):
        draw, commands, has_ended = random.Random(number), list[str](), False
        game.reset(number)
        while not has_ended and len(commands) < game.turns:
            commands.append(draw.choice(sorted(game.commands())))
            has_ended = game.step(commands[-1])
        episodes.append(commands)
    return episodes


def processor_time(below: Sequence[psutil.Process]) -> float:
    """Seconds that this process and others have worked.

    Linux counts a process's time in nanoseconds, and psutil reads it in hundredths of a second: too coarse for a step.
    """
    clocks = [time.CLOCK_PROCESS_CPUTIME_ID, *((~process.pid << 3) | 2 for process in below)]
    return sum(time.clock_gettime_ns(clock) for clock in clocks) / 1e9


def block(game: Game, episodes: Sequence[Sequence[str]], seconds: float) -> float:
    """Microseconds of a step, over as many rounds of the episodes as take so long."""
    total, steps = 0.0, 0
    while total < seconds:
        for number, commands in enumerate(episodes):
            game.reset(number)
            below = psutil.Process().children(recursive=True)
            before = processor_time(below)
            for command in commands:
                game.step(command)
            total += processor_time(below) - before
            steps += len(commands)
    return 1e6 * total / steps


def measure(name: str, repeats: int, seconds: float) -> dict[str, Any]:
    """A row: microseconds of a step in each block, and their median; or a note that says why there is none."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        game = ROWS[name]()
    except (NeedsSetup, ModuleNotFoundError) as error:
        return {"note": str(error)}
    episodes = drawn(game)
    blocks = [block(game, episodes, seconds) for _ in range(_WARM_UP + repeats)][_WARM_UP:]
    rounded = [float(f"{figure:.4g}") for figure in blocks]
    return {"median": median(rounded), "blocks": rounded, "episodes": len(episodes), "steps": sum(map(len, episodes))}


def ratios(rows: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Time of an engine's step over the time of ours, for each pair that was measured."""
    return [
        {**pair._asdict(), "times": float(f"{rows[pair.engine]['median'] / rows[pair.ours]['median']:.3g}")}
        for pair in PAIRS
        if all("median" in rows.get(name, {}) for name in (pair.ours, pair.engine))
    ]


def section(result: Mapping[str, Any]) -> str:
    """The text between the page's marks, from a result file's content."""
    rows, versions = result["rows"], result["versions"]
    programs = ", ".join(f"{name} {versions[name]}" for name in (*PACKAGES, "java") if name in versions)
    steps = [(name, f"{row['median']:,.4g}") for name, row in rows.items() if "median" in row]
    times = [
        (entry["ours"], entry["engine"], f"{entry['times']:,.3g}", f"{entry['goal'] or '-'}")
        for entry in result["ratios"]
    ]
    return "\n\n".join(
        [
            f"Medians of {result['repeats']} blocks on one core of {result['machine']}, with {programs}, "
            f"at commit {result['commit']}.",
            table(("world", "microseconds of a step"), steps),
            table(("ours", "engine", "times the time of ours", "goal"), times),
        ]
    )


def page(text: str, result: Mapping[str, Any] | None) -> str:
    """The page with the section that belongs to the result, or that there is none."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(result) if result else 'No result is committed yet.'}\n\n{END}{after}"


def java_version() -> dict[str, str]:
    """Java's version, where there is Java."""
    try:
        printed = subprocess.run([java_program(), "-version"], capture_output=True, text=True, check=True, timeout=60)
    except NeedsSetup:
        return {}
    return {"java": printed.stderr.split('"')[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description="Our text worlds against the engines of others.")
    parser.add_argument("--only", default="", help="measure only rows whose names contain this")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of processor time in a block")
    parser.add_argument("--journal", type=Path, default=Path("engines.journal"), help="of rows that are done")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="write the tables of docs/speed.md; measures nothing")
    options = parser.parse_args()
    sizes = (options.repeats, options.seconds)
    if options.row:
        return print(json.dumps(measure(options.row, *sizes)))
    if options.page:
        PAGE.write_text(page(PAGE.read_text(), json.loads(options.out.read_text())))
        return print(f"written to {PAGE}")
    about = origin(options.out, ("gymnasium", "psutil", *PACKAGES), journal=options.journal)
    about["versions"] |= java_version()
    refuse(options.out, about["commit"])
    journal = Journal[dict[str, Any]](options.journal, about["commit"])
    measured = journal.figures.setdefault(" ".join(map(str, sizes)), {})
    names = [name for name in ROWS if options.only in name]
    for name in names:
        if name not in measured:
            words = ("--row", name, "--repeats", str(sizes[0]), "--seconds", str(sizes[1]))
            figure = measure_apart(__file__, *words, environment={"OMP_NUM_THREADS": "1"})
            journal.add(" ".join(map(str, sizes)), name, figure)
        print(f"{name:<36}{measured[name].get('median', measured[name].get('note'))}", flush=True)
    rows = {name: measured[name] for name in names}
    for entry in ratios(rows):
        print(f"{entry['ours']:<20}{entry['engine']:<36}{entry['times']:>8,.4g} times, goal {entry['goal'] or '-'}")
    write(options.out, about, {"repeats": sizes[0], "seconds": sizes[1], "rows": rows, "ratios": ratios(rows)})


if __name__ == "__main__":
    main()
