"""Tables of peers, in README and on docs/speed.md, from committed results: in each both sides are from the same run.

python -m benchmarks.speed.peers_table
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.kit.provenance import RESULTS, ROOT
from benchmarks.kit.table import table


class Row(NamedTuple):
    """A row: work, result file, both figures in one unit, and the peer's name.

    Attributes:
        rate: higher figures are better.
    """

    subject: str
    file: str
    ours: float
    peer: float
    unit: str
    name: str
    rate: bool = False

    @property
    def ratio(self) -> float:
        """Times that ours is better."""
        return self.ours / self.peer if self.rate else self.peer / self.ours


def rows() -> list[Row]:
    """The five rows."""
    results = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in ("env_speed", "scale", "learner")}
    game = {row["environment"]: row["microseconds"] for row in results["env_speed"]["rows"]}
    engine = {row["environment"]: row for row in results["env_speed"]["others"]}
    held = {row["name"]: row["median"] for row in results["scale"]["rows"]}
    learner = {row["name"]: row["best"] for row in results["learner"]["rows"]}
    sandbox = json.loads((RESULTS / "sandbox.json").read_text())["milliseconds"]
    return [
        _turn(game["manyturn/Household-v0 easy"], engine["alfworld, our test/easy/0"]),
        Row(
            "turns of 512 open environments",
            "scale.json",
            held["seats 512 corridor"]["steps_per_s"],
            held["AsyncVectorEnv, plain, pipes 512"]["steps_per_s"],
            "/s",
            "Gymnasium `AsyncVectorEnv`",
            rate=True,
        ),
        _learning("learning, tiny model: 30 turns, a sample each", "30 turns | history", learner),
        _learning("learning, tiny model: 8 episodes of one long prompt", "8 members, prompt of 1,000 | whole", learner),
        Row(
            "a command in a container",
            "sandbox.json",
            sandbox["tool server, command"]["p50"],
            sandbox["exec, command"]["p50"],
            "ms",
            "`docker exec`",
        ),
    ]


def first() -> list[Row]:
    """The rows that README shows: of an environment, of learning, of a sandbox."""
    return rows()[::2]


def _turn(ours: Mapping[str, Any], peer: Mapping[str, Any]) -> Row:
    return Row(
        "a turn of a household game",
        "env_speed.json",
        ours["step"][0],
        peer["step"][0],
        "µs",
        "ALFWorld's engine",
    )


def _learning(subject: str, name: str, learner: Mapping[str, Any]) -> Row:
    times = [learner[f"{name} | {packing}"]["cpu_s"] for packing in ("trie", "trl")]
    return Row(subject, "learner.json", times[0], times[1], "CPU s", "TRL `GRPOTrainer`")


def number(value: float) -> str:
    """Three digits, or a whole number with commas.

    >>> number(11.95), number(57.4), number(113309.0)
    ('11.9', '57.4', '113,309')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times(ratio: float) -> str:
    """A ratio rounded down: to whole numbers, and from a hundred to two digits.

    >>> times(4297.2), times(14.7), times(7.66)
    ('4200', '14', '7')
    """
    step = 10 ** max(0, len(str(int(ratio))) - 2) if ratio >= 100 else 1
    return str(int(ratio // step * step))


def page(shown: Sequence[Row], root: str = "") -> str:
    """The table of some rows.

    Args:
        root: the way from the page to the project's folder.
    """
    lines = [
        (
            row.subject,
            f"{number(row.ours)} {row.unit}",
            f"{row.name}: {number(row.peer)} {row.unit}",
            f"[{times(row.ratio)}×]({root}{(RESULTS / row.file).relative_to(ROOT)})",
        )
        for row in shown
    ]
    return table(("work", "manyturn", "peer", "ratio"), lines)


if __name__ == "__main__":
    print(page(first()), page(rows(), "../"), sep="\n\n")
