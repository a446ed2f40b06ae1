"""A ledger turn by turn: what was read and said at each, which is what formats of others hold; and as plain values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.agents.tokens.ledger import (
    Branch,
    LastPrompt,
    Ledger,
    Limits,
    Span,
    commands_from_plain,
    commands_to_plain,
)


class Said(NamedTuple):
    """One turn of a ledger: what ``Ledger.record`` took.

    Attributes:
        prompt, reply: ids of all that was read, and of the T tokens that were said.
        logprobs, entropies: T numbers each; None where an entropy is unknown.
        allowed: T lists of what was possible; empty if everything was.
        commands: replies that it was chosen among as a whole; empty if it was not.
    """

    prompt: list[int]
    reply: list[int]
    logprobs: list[float]
    entropies: list[float | None]
    version: int
    role: str
    allowed: list[list[int]]
    commands: list[list[int]]


def said_of(ledger: Ledger) -> list[Said]:
    """The turns of a ledger."""
    replies = []
    for turn, span in enumerate(ledger.spans):
        branch = ledger.branches[span.branch]
        limits = branch.limits(span.start, span.end)
        entropies = [_number_or_none(entropy) for entropy in branch.entropies[span.start : span.end]]
        replies.append(
            Said(
                ledger.prompt(turn),
                ledger.reply(turn),
                list(branch.logprobs[span.start : span.end]),
                entropies,
                span.version,
                branch.role,
                [list(tokens) for tokens in limits.allowed],
                [list(command) for command in limits.commands],
            )
        )
    return replies


def ledger_of(turns: Sequence[Said], unanswered: LastPrompt | None) -> Ledger:
    """The ledger that recording these turns makes."""
    ledger = Ledger()
    for turn in turns:
        entropies = [math.nan if entropy is None else entropy for entropy in turn.entropies]
        limits = Limits([tuple(tokens) for tokens in turn.allowed], tuple(map(tuple, turn.commands)))
        ledger.record(turn.prompt, turn.reply, turn.logprobs, turn.version, entropies, turn.role, limits)
    ledger.unanswered = unanswered
    return ledger


def ledger_to_plain(ledger: Ledger) -> dict[str, Any]:
    """The ledger as JSON values; an unknown entropy is null."""
    return {
        "branches": [
            {
                "ids": list(branch.ids),
                "reply_mask": list(branch.reply_mask),
                "logprobs": list(branch.logprobs),
                "entropies": [_number_or_none(entropy) for entropy in branch.entropies],
                "role": branch.role,
                "allowed": [[place, list(choices)] for place, choices in branch.allowed.items()],
                **({"commands": commands_to_plain(branch)} if branch.commands else {}),
            }
            for branch in ledger.branches
        ],
        "spans": [[span.branch, span.start, span.end, span.version] for span in ledger.spans],
        "unanswered": prompt_to_plain(ledger.unanswered),
    }


def ledger_from_plain(plain: Mapping[str, Any]) -> Ledger:
    """Inverse of ``ledger_to_plain``."""
    branches = [
        Branch(
            list(branch["ids"]),
            list(branch["reply_mask"]),
            list(branch["logprobs"]),
            [math.nan if entropy is None else entropy for entropy in branch["entropies"]],
            branch["role"],
            {place: tuple(choices) for place, choices in branch["allowed"]},
            commands_from_plain(branch.get("commands", ())),
        )
        for branch in plain["branches"]
    ]
    return Ledger(branches, [Span(*span) for span in plain["spans"]], prompt_from_plain(plain["unanswered"]))


def prompt_to_plain(prompt: LastPrompt | None) -> dict[str, Any] | None:
    """The unanswered prompt as JSON values."""
    return None if prompt is None else {"ids": list(prompt.ids), "role": prompt.role}


def prompt_from_plain(plain: Mapping[str, Any] | None) -> LastPrompt | None:
    """Inverse of ``prompt_to_plain``."""
    return None if plain is None else LastPrompt(list(plain["ids"]), plain["role"])


def _number_or_none(entropy: float) -> float | None:
    return None if math.isnan(entropy) else entropy
