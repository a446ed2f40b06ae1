"""Summary of an evaluation, computed from the rows of its episodes only."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from manyturn.agents.evaluation.statistics import Interval, is_share, mean_interval, pass_at_k, pass_hat_k
from manyturn.agents.play.episode import Ending
from manyturn.agents.records.episode_rows import Row
from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.tasks.env_identity import KEY

SCHEMA_VERSION = 4
ABOUT = (
    *("env", "args", "wrappers", KEY, "user", "split", "panel", "repeats", "seed", "max_turns"),
    *("policy", "agent", "sampling", "endpoint", "priced"),
)
_ERRORS = frozenset(ending.value for ending in Ending if ending.is_error)


def values_by_task(rows: Iterable[Row], column: str) -> dict[str, list[float]]:
    """Task id -> the numbers of its episodes; episodes without a number, such as errors, are left out."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row[column] is not None:
            values.setdefault(row["task"], []).append(float(row[column]))
    return values


def summarise(
    rows: Sequence[Row],
    about: Mapping[str, Any],
    wall: float | None = None,
    lost: Spent = NOTHING,
    behind: float | None = None,
) -> dict[str, Any]:
    """The summary of an evaluation, as plain values for JSON.

    Episodes that ended in an error take part in nothing but ``endings``, ``errors``, ``retried``, ``seconds`` and
    ``success_errors_as_failures``, the reading in which they count as failures. What is not known is None: an
    interval over one task, tokens of a policy without tokens, pass@k where no task has k scored episodes.

    Args:
        rows: E rows of episodes, as ``episode_rows`` makes them or ``read_episodes`` reads them.
        about: what the rows do not say, with the keys ``ABOUT``; repeated in the summary.
        wall: seconds that the evaluation took. Seconds of policy and environment are sums over episodes, waiting
            included; episodes run side by side, so that they come to more.
        lost: what replies took that are in no scored episode, such as those of attempts that ended in an error.
        behind: seconds that turns waited for other episodes of their worker since the evaluation last started.
    """
    scored = scored_rows(rows)
    failed = [{**row, "success": bool(row["success"])} for row in rows]
    won = [row for row in scored if row["success"]]
    return {
        "schema_version": SCHEMA_VERSION,
        **{key: about[key] for key in ABOUT},
        "experience": about.get("experience"),
        **{name: about[name] for name in ("roles", "search") if name in about},
        "n_tasks": len({row["task"] for row in rows}),
        "n_episodes": len(rows),
        "success": _interval(scored, "success"),
        "success_errors_as_failures": _interval(failed, "success"),
        "return": _interval(scored, "return"),
        "parts": _named(scored, "parts", part_names(rows), absent=0.0),
        "measures": _named(scored, "measures", {name for row in scored for name in row["measures"]}, absent=None),
        **_attempts(scored, about["repeats"]),
        "turns": {"mean": _mean(scored, "turns"), "mean_on_success": _mean(won, "turns")},
        **replies_of(scored),
        "lost": {**lost._asdict(), "cost": _rounded(lost.cost)},
        "choices": _mean(scored, "choices"),
        "endings": {ending.value: sum(row["ending"] == ending for row in rows) for ending in Ending},
        "truncations": dict(sorted(Counter(r["cause"] for r in rows if r["ending"] == Ending.TRUNCATED).items())),
        "errors": {"n": len(rows) - len(scored), "share": _share(len(rows) - len(scored), len(rows))},
        "retried": _retried(rows, scored),
        "seconds": {
            "wall": wall,
            "policy": math.fsum(row["seconds_policy"] for row in rows),
            "env": math.fsum(row["seconds_env"] for row in rows),
            "behind": behind,
        },
        "by_difficulty": _broken_down(rows, lambda row: [] if row["difficulty"] is None else [row["difficulty"]]),
        "by_tag": _broken_down(rows, lambda row: row["tags"]),
    }


def replies_of(scored: Sequence[Row]) -> dict[str, Any]:
    """Cost of replies, and the shares that were invalid or cut, over episodes that did not end in an error."""
    wins = sum(bool(row["success"]) for row in scored)
    turns = sum(row["turns"] for row in scored)
    return {
        "tokens": _tokens(scored, wins),
        "cost": _cost(scored, wins),
        "invalid_action_rate": _share(sum(row["invalid_actions"] for row in scored), turns),
        "broken_format_rate": _share(sum(row["broken_formats"] for row in scored), turns),
        "not_understood_rate": _share(sum(row["not_understood"] for row in scored), turns),
        "cut_reply_rate": _cut(scored),
        "fault_rates": _fault_rates(scored, turns),
    }


def scored_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows of episodes that did not end in an error."""
    return [row for row in rows if row["ending"] not in _ERRORS]


def part_names(rows: Iterable[Row]) -> set[str]:
    """The parts of the reward in episodes, the outcome among them even if none earned it."""
    return {OUTCOME, *(name for row in rows for name in row["parts"])}


def spent_on(rows: Iterable[Row]) -> Spent:
    """Total usage of the replies of episodes."""
    return NOTHING.plus(*(Spent(*(row[name] for name in Spent._fields)) for row in rows))


def plain_interval(interval: Interval) -> dict[str, Any]:
    """An interval as a summary has it; what is not known is None."""
    ends = {"mean": interval.mean, "ci_low": interval.low, "ci_high": interval.high}
    plain = {name: None if math.isnan(value) else value for name, value in ends.items()}
    return {**plain, "n_tasks": interval.n_tasks, "n_episodes": interval.n_episodes}


def _interval(rows: Sequence[Row], column: str) -> dict[str, Any]:
    values = values_by_task(rows, column)
    return plain_interval(mean_interval(values, proportion=column == "success" or is_share(values)))


def _named(rows: Sequence[Row], column: str, names: Iterable[str], absent: float | None) -> dict[str, Any]:
    """Name -> the mean over episodes of the numbers that a column gives names to.

    Args:
        absent: the number of an episode that does not have the name; None leaves it out.
    """
    values = {name: [{**row, name: row[column].get(name, absent)} for row in rows] for name in sorted(names)}
    return {name: _interval(named, name) for name, named in values.items()}


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def _mean(rows: Sequence[Row], column: str) -> float | None:
    """Mean over episodes that have a number there."""
    values = [row[column] for row in rows if row[column] is not None]
    return math.fsum(values) / len(values) if values else None


def _attempts(scored: Sequence[Row], repeats: int) -> dict[str, Any]:
    """pass@k and pass^k for k = 1, 2, 4 … up to the repeats, each over the tasks with k scored episodes."""
    tries = {task: [bool(value) for value in values] for task, values in values_by_task(scored, "success").items()}
    shares: dict[str, Any] = {"pass_at_k": {}, "pass_hat_k": {}}
    for power in range(repeats.bit_length()):
        k = 2**power
        n_tasks = sum(len(tried) >= k for tried in tries.values())
        shares["pass_at_k"][str(k)] = {"mean": pass_at_k(tries, k), "n_tasks": n_tasks}
        shares["pass_hat_k"][str(k)] = {"mean": pass_hat_k(tries, k), "n_tasks": n_tasks}
    return shares


def _tokens(scored: Sequence[Row], wins: int) -> dict[str, Any]:
    """Totals over the scored episodes that were counted, and means of one of them."""
    spent = spent_on(scored)
    return {
        "prompt_total": spent.prompt_tokens,
        "reply_total": spent.reply_tokens,
        "prompt_mean": _mean(scored, "prompt_tokens"),
        "reply_mean": _mean(scored, "reply_tokens"),
        "computed_mean": _mean(scored, "computed_tokens"),
        "last_prompt_mean": _mean(scored, "last_prompt_tokens"),
        "reply_per_success": _each(spent.reply_tokens, wins),
    }


def _cost(scored: Sequence[Row], wins: int) -> dict[str, Any]:
    """At the prices that were given, in their currency; None without prices."""
    total = spent_on(scored).cost
    costs = {"total": total, "mean": _mean(scored, "cost"), "per_success": _each(total, wins)}
    return {name: _rounded(cost) for name, cost in costs.items()}


def _rounded(cost: float | None) -> float | None:
    """Without the digits that sums of floats leave behind."""
    return None if cost is None else round(cost, 9)


def _cut(scored: Sequence[Row]) -> float | None:
    """Share of the replies that ended at their limit of tokens, of those where that is known; inner turns count too."""
    counted = [row for row in scored if row["cut_replies"] is not None]
    return _share(sum(row["cut_replies"] for row in counted), sum(row["turns"] + row["inner_turns"] for row in counted))


def _fault_rates(scored: Sequence[Row], turns: int) -> dict[str, float]:
    """Cause -> share of the replies that meant nothing because of it, the most frequent first."""
    counts = Counter[str]()
    for row in scored:
        counts.update({cause: int(count) for cause, count in (row["faults"] or {}).items()})
    return {cause: count / turns for cause, count in counts.most_common()}


def _each(total: float | None, count: int) -> float | None:
    return total / count if total is not None and count else None


def _retried(rows: Sequence[Row], scored: Sequence[Row]) -> dict[str, Any]:
    """Number of episodes that were retried, and success with and without a retry."""
    again = sum(row["attempts"] > 1 for row in rows)
    return {
        "n": again,
        "share": _share(again, len(rows)),
        "success_retried": _mean([row for row in scored if row["attempts"] > 1], "success"),
        "success_first_try": _mean([row for row in scored if row["attempts"] == 1], "success"),
    }


def _broken_down(rows: Sequence[Row], labels: Callable[[Row], Iterable[str]]) -> dict[str, Any]:
    """Label -> success of the episodes that bear it, in the order of labels."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        for label in labels(row):
            groups.setdefault(label, []).append(row)
    return {
        label: {"n_episodes": len(groups[label]), "success": _interval(groups[label], "success")}
        for label in sorted(groups)
    }
