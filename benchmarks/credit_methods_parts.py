"""What each part of a method gains where all rows have one learning rate, so that gains of parts can be added.

    python benchmarks/credit_methods_parts.py FILE

FILE is of ``credit_methods.py --rate``. Tables and a figure are written next to it. Everything in them is exploratory.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from credit_methods_figure import draw
from credit_methods_lines import Line, read_lines
from credit_methods_plan import METHODS, WORLDS
from credit_methods_results import Results
from credit_methods_table import splits_table

from manyturn.envs.contract.durable import replace_text


def show(lines: Sequence[Line], results: Results) -> str:
    """The table as Markdown. Raises ValueError where lines cannot stand in one table."""
    commits = sorted({line["commit"] for line in lines})
    if len(commits) > 1 or commits[0].endswith("-dirty"):
        raise ValueError(f"a table is made of one clean commit, and these lines are of {', '.join(commits)}")
    rates = {world: sorted({line["factor"] for line in lines if line["world"] == world}) for world in WORLDS}
    if several := [world for world, found in rates.items() if len(found) > 1]:
        raise ValueError(f"rows of {', '.join(several)} have several rates, at which parts do not add up")
    told = ", ".join(f"{world} {found[0]:g}" for world, found in rates.items() if found)

    return "\n\n".join(
        [
            "# Parts of methods at one learning rate",
            f"{len(lines)} cells of commit {commits[0]}. Multiples of a world's own rate: {told}. Exploratory.",
            splits_table(results),
        ]
    )


def main() -> None:
    if len(sys.argv) != 2 or not (lines := read_lines(path := Path(sys.argv[1]))):
        raise SystemExit("name a file with results: credit_methods.py RUN-FOLDER --rate FACTOR --out FILE makes one")
    results = Results(lines)
    replace_text(path.with_suffix(".md"), show(lines, results) + "\n")
    draw([results.split(world, method) for world in WORLDS for method in METHODS], path.with_suffix(".png"))
    print(f"written to {path.with_suffix('.md')} and {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
