"""Page of a scorecard, in Markdown."""

import json
import math
from collections.abc import Iterator, Sequence

from manyturn.agents.evaluation.statistics import Interval
from manyturn.agents.scorecard.contamination import OVERLAPS, RUN_WORDS
from manyturn.agents.scorecard.scorecard import Scorecard
from manyturn.agents.scorecard.verdicts import PAID_FROM, Rates
from manyturn.envs.conformance.solvability_checks import MARGIN


def page(card: Scorecard) -> str:
    """The page; text of the environment cannot leave its cell."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Scorecard) -> Iterator[str]:
    facts = card.facts
    yield f"# Scorecard of {_cell(card.env)}"
    yield ""
    yield (
        f"**Paid like the expert: {', '.join(map(_cell, card.paid)) or 'no probe'}. "
        f"Paid in part: {', '.join(map(_cell, card.paid_in_part)) or 'no probe'}.** {facts['tasks']} tasks of the "
        f"split {_cell(facts['split'])}, each played once by every policy; seed {facts['seed']}"
        f"{f', arguments {_cell(json.dumps(dict(card.env_args), sort_keys=True))}' if card.env_args else ''}."
    )
    yield ""
    yield from _table(("policy", "success", "return", "errors", "verdict", "paid at"), (_row(row) for row in card.rows))
    yield ""
    yield from _thresholds(card)
    yield ""
    yield "## Policies"
    yield ""
    yield from (f"- **{_cell(row.name)}**: {_cell(row.about)}" for row in card.rows)
    yield ""
    yield "## Overlap of held-out tasks"
    yield ""
    yield from _overlaps(card)
    yield ""
    yield "## Not probed"
    yield ""
    yield from (f"- {_cell(gap)}" for gap in card.not_probed)


def _row(row: Rates) -> tuple[str, ...]:
    reason = f" ({row.reason})" if row.reason and row.verdict in ("paid", "not judged") else ""
    errors = f"{row.errors}: {_cell(row.first_error)}" if row.errors else "0"
    paid_at = "" if row.kind == "reference" else ", ".join(map(_cell, row.paid_at))
    return _cell(row.name), shown(row.success), shown(row.value), errors, f"{row.verdict}{reason}", paid_at


def _thresholds(card: Scorecard) -> Iterator[str]:
    levels = {"success": card.thresholds.success, "return": card.thresholds.value}
    words = [f"{name} {level:.2f}" for name, level in levels.items() if level is not None]
    yield (
        f"Intervals are of 95 %, over tasks. A probe is paid from {' or '.join(words) or 'no level that is known'} on: "
        f"{PAID_FROM:.0%} of the way from random actions to the expert. It is paid in part if its success is above "
        "that of random actions by a sign-flip test at 0.05, adjusted for the number of probes (Holm). Random actions "
        f"are paid if their success comes within {MARGIN:g} of the expert's."
    )


def _overlaps(card: Scorecard) -> Iterator[str]:
    if not card.overlaps:
        yield "There is nothing to compare with: no training split, and no file of `--known`."
        return
    head = ("compared with", "texts", "held-out tasks", "same text", "solved alike", "long runs in common", "such as")
    rows = []
    for one in card.overlaps:
        alike = one["solved_alike"]
        examples = [f"{task} and {other}" for task, other in list(one["same_examples"].items())[:2]]
        examples += [f"{task} and {name} ({share:.0%})" for task, (name, share) in one["long_examples"].items()][:2]
        rows.append(
            (
                *(_cell(str(one[name])) for name in ("source", "texts", "tasks", "same")),
                f"{alike[0]} of {alike[1]}" if alike else "-",
                f"{one['long']} of {one['own']}",
                _cell("; ".join(examples[:2])),
            )
        )
    yield from _table(head, rows)
    yield ""
    yield (
        "A task's text is its first observation, compared in small letters and with single spaces. Tasks with one text "
        "may still be two problems, where the first observation hides what differs. They are one for a policy that "
        f"remembers if the expert solves them alike. Long runs are {RUN_WORDS} words that few held-out tasks share. A "
        f"task counts if one text has {OVERLAPS:.0%} of its runs; tasks without runs of their own are not counted."
    )


def shown(interval: Interval | None) -> str:
    """A mean with the ends of its interval."""
    if interval is None or math.isnan(interval.mean):
        return "-"
    ends = "" if math.isnan(interval.low) else f" [{interval.low:.2f}, {interval.high:.2f}]"
    return f"{interval.mean:.2f}{ends}"


def _table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _cell(text: str) -> str:
    """Text that neither ends a cell or line nor is read as markup."""
    text = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    for sign in "\\|<>`*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text
