"""Remarks below an evaluation's figures, one line for each that would be misread."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from manyturn.agents.play.episode import Ending
from manyturn.envs.contract.tasks.panel import selection_remark

_NEARLY_ALL = 0.995
_WAITED, _SHARE = 1.0, 0.1  # s, and of the environment's time


def remarks(summary: Mapping[str, Any], *, invalid_explained: bool = False) -> list[str]:
    """Lines to go below the table of a summary.

    Args:
        summary: as ``summarise`` makes it.
        invalid_explained: say nothing about invalid replies, since another remark does.
    """
    faults, chosen = fault_remarks(summary, invalid_explained), selection_remark(summary["panel"])
    lines = [*_tampered(summary), *_limited(summary), *faults, *_unpriced(summary), *_waited(summary), *_floor(summary)]
    return lines if chosen is None else [chosen, *lines]


def _tampered(summary: Mapping[str, Any]) -> Iterator[str]:
    if count := summary["endings"].get(Ending.TAMPERED, 0):
        yield f"{count} of {summary['n_episodes']} episodes forged their result: no success, and nothing earned by it"


def _limited(summary: Mapping[str, Any]) -> Iterator[str]:
    if is_limited(summary):
        yield "every reply was limited to the admissible commands of its turn (agent.only_admissible)"


def is_limited(summary: Mapping[str, Any]) -> bool:
    """True if an evaluation's replies were limited to admissible commands."""
    return bool((summary.get("agent") or {}).get("only_admissible"))


def fault_remarks(summary: Mapping[str, Any], explained: bool) -> Iterator[str]:
    """At most one line on the replies that meant nothing: the causes, the most frequent first.

    Args:
        explained: say nothing about invalid replies, since another remark does.
    """
    rates = dict(summary["fault_rates"]) | {"cut": summary["cut_reply_rate"] or 0.0}
    broken = 0.0 if explained else rates.pop("format", 0.0)
    clauses = sorted(
        ((rate, _clause(cause, rate, summary)) for cause, rate in rates.items() if cause in _CLAUSES), key=_rate
    )
    lines = [clause for rate, clause in clauses if rate >= _LEAST]
    if not explained and (not clauses or broken >= clauses[0][0]):
        lines = [*_invalid(summary), *lines]
    if lines:
        yield "; ".join(lines)


def _rate(clause: tuple[float, str]) -> float:
    return -clause[0]


_LEAST = 0.0005  # less is printed as 0.0 %
_CLAUSES = {
    "cut": "were cut at {limit}: give --sampling.max-tokens more",
    "filtered": "were withheld by the server's content filter",
    "refused": "were refusals of the model",
    "empty": "were empty: the policy wrote no words",
    "arguments": "called a tool with arguments that cannot be read: try another --agent.format, or a stronger model",
}


def _clause(cause: str, rate: float, summary: Mapping[str, Any]) -> str:
    longest = (summary["sampling"] or {}).get("max_tokens")
    limit = "their limit of tokens" if longest is None else f"sampling.max_tokens = {longest}"
    return f"{rate:.1%} of the replies {_CLAUSES[cause].format(limit=limit)}"


def _unpriced(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["priced"] and summary["cost"]["total"] is None:
        yield "cost unknown: prices were given, and the server reports no tokens"


def _waited(summary: Mapping[str, Any]) -> Iterator[str]:
    """One line where turns waited a second or more for others, and a tenth or more of the environment's time."""
    seconds = summary["seconds"]
    behind = seconds.get("behind") or 0.0  # absent in evaluations of older versions
    if behind >= _WAITED and behind >= _SHARE * seconds["env"]:
        yield f"turns waited {behind:.0f} s for other episodes of their worker: --workers N adds workers"


def _invalid(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["invalid_action_rate"] is None or summary["invalid_action_rate"] < _NEARLY_ALL:
        return
    agent, success = summary["agent"], summary["success"]["mean"]
    form = None if agent is None else agent["format"]
    if form is None or form["name"] == "free_text":
        yield (
            "every action is invalid: the environment says so of each"
            + (", and yet the goal is reached: see what its respond() calls invalid" if success else "")
        )
    elif success:
        yield (
            f"invalid and yet successful: no reply had {_form(form)}, so each was played as plain text; give "
            "--agent.format free_text if that is how the policy answers"
        )
    elif (broken := summary["broken_format_rate"]) >= _NEARLY_ALL:
        yield (
            f"every action is invalid: no reply had {_form(form)}; give --agent.format free_text if the policy "
            "answers with the action alone"
        )
    elif broken > 1 - _NEARLY_ALL:
        yield (
            f"every action is invalid: {broken:.1%} of the replies lacked {_form(form)}, and the environment refused "
            "what the others held"
        )
    else:
        yield f"every action is invalid: the replies had {_form(form)}, and the environment refused what they held"


def invalid_reply(summary: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> str | None:
    """The most frequent reply that meant nothing, where hardly any meant something; None elsewhere.

    Args:
        turns: rows of the turns; those of broken formats hold the reply as it was.
    """
    rate = summary["invalid_action_rate"]
    if summary["agent"] is None or rate is None or rate < _NEARLY_ALL:
        return None
    wrong = [row for row in turns if not (row["format_valid"] and row["understood"]) and row["action"]]
    broken = [row for row in wrong if not row["format_valid"]]
    most_frequent = Counter(row["action"] for row in broken or wrong).most_common(1)
    return most_frequent[0][0] if most_frequent else None


def _form(form: Mapping[str, Any]) -> str:
    """The form of a reply in a format, in words."""
    return f"the tags <{form['tag']}>" if "tag" in form else f"the form of agent.format {form['name']}"


def _floor(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["policy"] == "random" and summary["choices"] is None:
        yield (
            "random had nothing to choose from: the environment lists no admissible commands, so it said random "
            "letters; a method admissible() makes it a floor to compare with"
        )
