"""Documents for tests: real episodes of scripted policies, with tokens and credit made up from keys."""

import asyncio
import functools
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.agents.records.episode_rows import episode_rows, turn_rows
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.report.page import static_page

CHUNK = 16
Trace = dict[str, Any]
Report = tuple[dict[str, Any], list[Trace]]
_OF_EPISODES = ("task", "split", "difficulty", "tags", "stage", "member", "success", "return", "ending", "cause")


def played(env: str, tasks: int, members: int, noise: float, stage: str = "train/1", turns: int = 30) -> list[Episode]:
    """``tasks`` * ``members`` episodes of the expert with a share of random moves, of at most ``turns`` turns."""

    async def run() -> list[Episode]:
        async with InlineSeats(env, {}, [], 16) as seats:
            chosen = [seats.tasks("train")[i] for i in range(tasks)]
            plan = [(task, EpisodeKey(0, stage, task.id, member)) for task in chosen for member in range(members)]
            return await gather(seats, Scripted(noise), plan, max_turns=turns)

    # In a thread of its own: the driver of a browser holds a running loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, run()).result()


def traces(episodes: Sequence[Episode]) -> list[Trace]:
    """A trace for each episode; what only a model has is drawn from keys."""
    rows = iter(turn_rows(episodes))
    return [_trace([next(rows) for _ in episode.turns], episode) for episode in episodes]


def _trace(rows: list[dict[str, Any]], episode: Episode) -> Trace:
    rng = generator("report-test", *episode.key)
    level = round(float(rng.normal()), 4)
    steps = [round(float(value), 4) for value in rng.normal(size=len(rows))]
    tokens = [re.findall(r"\s?\S+|\s", row["reply"]) for row in rows]
    return {
        "observations": [row["observation"] for row in rows],
        "replies": [row["reply"] for row in rows],
        "reasoning": [row["reasoning"] for row in rows],
        "inner": [row["inner"] for row in rows],
        "faults": [row["fault"] for row in rows],
        "actions": [row["action"] for row in rows],
        "roles": [row["role"] for row in rows],
        **{name: [row[name] for row in rows] for name in ("format_valid", "understood")},
        "rewards": [row["reward"] for row in rows],
        "parts": [row["reward_parts"] for row in rows],
        "to_go": [row["return_to_go"] for row in rows],
        "anchors": [row["anchor"] for row in rows],
        "progress": [row["progress"] for row in rows],
        "versions": [3 for _ in rows],
        "seconds": [[round(row["seconds_policy"], 5), round(row["seconds_env"], 5)] for row in rows],
        "columns": {
            "advantage": [round(level + step, 4) for step in steps],
            "episode_advantage": [level for _ in rows],
            "step_advantage": steps,
        },
        "tokens": tokens,
        "logprobs": [[round(-float(rng.exponential()), 4) for _ in pieces] for pieces in tokens],
        "entropies": [[round(float(rng.exponential()), 4) for _ in pieces] for pieces in tokens],
        "last": episode.last,
    }


def hostile(texts: Sequence[str]) -> Report:
    """A document in which every text stands in every place that holds text: episode i has text i."""
    count = len(texts)
    number = {"name": "number", "kind": "number"}
    found = document([])
    found |= {
        "title": texts[0],
        "facts": [[text, text] for text in texts],
        "warnings": list(texts),
        "figures": [_figure(text, 0.5, 0.4, 0.6, 3, True) for text in texts],
        "curves": [
            {
                "title": text,
                "x": text,
                "y": text,
                "percent": False,
                "series": [{"name": text, "points": [[0, 1, 0, 2], [1, None, None, None]]}] * 2,
            }
            for text in texts[:: count // 12 + 1]
        ],
        "tables": [
            {"title": text, "columns": [{"name": text, "kind": "text"}, number], "rows": [[text, 1]]} for text in texts
        ],
        "sources": list(texts),
    }
    found["episodes"] = {
        **{name: list(texts) for name in ("task", "split", "difficulty", "stage", "cause")},
        "source": list(range(count)),
        "tags": [[text] for text in texts],
        "member": [0] * count,
        "success": [None, *[i % 2 == 0 for i in range(1, count)]],
        "return": [None, *[float(i % 2 == 0) for i in range(1, count)]],
        "ending": ["env_error", *["completed"] * (count - 1)],
        "attempts": [1] * count,
        "turns": [2] * count,
        "inner_turns": [0] * count,
        "invalid": [2] * count,
        "seconds": [0.1] * count,
        "credit": [None] * count,
    }
    return found, [_hostile_trace(text) for text in texts]


def _hostile_trace(text: str) -> Trace:
    return {
        **{name: [text, text] for name in ("observations", "replies", "reasoning", "anchors", "roles")},
        "inner": [None, None],
        "faults": [None, None],
        "actions": [f"{text}!", f"{text}!"],
        **{name: [False, False] for name in ("format_valid", "understood")},
        **{name: [1.0, -1.0] for name in ("rewards", "to_go", "progress")},
        "parts": [{text: 1.0}, {text: -1.0}],
        "versions": [None, None],
        "seconds": [[0.1, 0.1]] * 2,
        "columns": {text: [0.5, -0.5]},
        "tokens": [[text, text], None],
        "logprobs": [[-1.0, None], None],
        "entropies": [None, None],
        "last": text,
    }


def document(parts: Sequence[tuple[str, Sequence[Episode]]], kind: str = "run") -> dict[str, Any]:
    """A document of the episodes of each source."""
    rows = [(number, row) for number, (_, episodes) in enumerate(parts) for row in episode_rows(episodes)]
    columns = {name: [row[name] for _, row in rows] for name in _OF_EPISODES}
    return {
        "format": 1,
        "kind": kind,
        "title": f"{kind} of {' and '.join(name for name, _ in parts)}",
        "facts": [
            ["environment", "manyturn/Household-v0"],
            ["advantage", "gigpo"],
            ["seed", "0"],
            ["turns at most", "30"],
        ],
        "warnings": ["2 episodes ended in an error", "shows the newest 48 of 960 episodes"],
        "figures": FIGURES,
        "curves": curves(),
        "tables": TABLES,
        "sources": [name for name, _ in parts],
        "episodes": {
            "source": [number for number, _ in rows],
            **columns,
            "attempts": [row["attempts"] for _, row in rows],
            "turns": [row["turns"] for _, row in rows],
            "inner_turns": [row["inner_turns"] for _, row in rows],
            "invalid": [row["invalid_actions"] for _, row in rows],
            "seconds": [row["seconds_policy"] + row["seconds_env"] for _, row in rows],
            "credit": [None if row["member"] % 3 == 2 else 0.25 * row["member"] for _, row in rows],
        },
        "chunk_size": CHUNK,
        "done": True,
    }


def chunked(traces: Sequence[Trace]) -> Iterator[Sequence[Trace]]:
    """Traces in chunks of the document's size."""
    for begin in range(0, len(traces), CHUNK):
        yield traces[begin : begin + CHUNK]


def curves() -> list[dict[str, Any]]:
    """Success with a band and gaps, and a loss on a scale of its own."""
    rng = generator("report-test", "curves")
    steps = range(1, 41)
    rise = [0.55 + 0.4 * (1 - 0.93**step) + float(rng.normal()) * 0.02 for step in steps]
    train = [[step, round(y, 4), None, None] for step, y in zip(steps, rise, strict=True)]
    held = [
        [s, round(rise[s - 1] - 0.03, 4), round(rise[s - 1] - 0.1, 4), round(rise[s - 1] + 0.03, 4)]
        for s in (1, 10, 20, 30, 40)
    ]
    gaps = [[step, None if 12 <= step < 15 else round(1.2 * 0.97**step, 4), None, None] for step in steps]
    return [
        {
            "title": "Success",
            "x": "step",
            "y": "success",
            "percent": True,
            "series": [{"name": "training", "points": train}, {"name": "validation", "points": held}],
        },
        {
            "title": "Entropy",
            "x": "step",
            "y": "nats per token",
            "percent": False,
            "series": [{"name": "entropy", "points": gaps}],
        },
    ]


def _figure(
    name: str, value: float | None, low: float | None, high: float | None, n: int | None, percent: bool
) -> dict[str, Any]:
    return {"name": name, "value": value, "low": low, "high": high, "n": n, "percent": percent}


FIGURES = [
    _figure("success before", 0.56, 0.49, 0.63, 200, True),
    _figure("success after", 0.955, 0.92, 0.98, 200, True),
    _figure("difference", 0.395, 0.32, 0.47, 200, True),
    _figure("turns per episode", 9.42, 8.9, 9.95, 200, False),
    _figure("training steps", 40, None, None, None, False),
    _figure("pass@4", None, None, None, None, True),
]
TABLES = [
    {
        "title": "By difficulty",
        "columns": [
            {"name": name, "kind": kind}
            for name, kind in (
                ("difficulty", "text"),
                ("episodes", "number"),
                ("success", "interval"),
                ("invalid", "percent"),
                ("time", "seconds"),
            )
        ],
        "rows": [
            ["easy", 120, [0.98, 0.94, 1.0], 0.01, 0.31],
            ["medium", 60, [0.93, 0.85, 0.98], 0.034, 1.9],
            ["hard", 20, [0.8, None, None], None, 130.0],
        ],
    },
    {
        "title": "Paired differences",
        "columns": [{"name": "pair", "kind": "text"}, {"name": "difference", "kind": "interval"}],
        "rows": [["after \u2212 before", [0.395, 0.32, 0.47]], ["greedy \u2212 sampled", [-0.02, -0.07, 0.03]]],
    },
]


@functools.cache
def run_report() -> Report:
    """Four tasks of the household with six episodes each, of which some fail."""
    episodes = played("manyturn/Household-v0", 4, 6, 0.72)
    return document([("gigpo", episodes)]), traces(episodes)


@functools.cache
def comparison_report() -> Report:
    """The expert and a worse policy on the same mazes."""
    parts = [(name, played("manyturn/Maze-v0", 8, 2, noise, "test")) for name, noise in (("a", 0.0), ("b", 0.6))]
    return document(parts, "comparison"), traces([episode for _, episodes in parts for episode in episodes])


def html(report: Report) -> str:
    """The page of a report."""
    return static_page(report[0], chunked(report[1]))


def address_of(report: Report, i: int, turn: int = 1) -> str:
    """The fragment that leads to a turn, counted from 1, of episode i."""
    head, columns = report[0], report[0]["episodes"]
    name = (head["sources"][columns["source"][i]], *(str(columns[part][i]) for part in ("stage", "task", "member")))
    return f"#e={'/'.join(quote(part, safe='') for part in name)}&t={turn}"
