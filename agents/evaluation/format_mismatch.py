"""Remarks on options that the replies contradict: reasoning and tool calls that the format does not read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.agents.records.episode_rows import Row

_OFTEN = 0.05  # share of the replies from which a remark is worth a line
_MOST = 0.5  # where every reply is invalid, a remark says why if it is true of so many


class ReplyRemarks(NamedTuple):
    """Lines to go below the table of a summary.

    Attributes:
        explain_invalid: whether they say why replies were invalid, so that ``remarks`` need not guess.
    """

    lines: list[str]
    explain_invalid: bool


def reply_remarks(episodes: Sequence[Row], turns: Sequence[Row], agent: Mapping[str, Any] | None) -> ReplyRemarks:
    """Remarks on options that the replies contradict.

    Args:
        episodes: E rows, as ``episode_rows`` makes them.
        turns: K rows of their turns.
        agent: the options of the policy; None for one without options, on which there is nothing to say.
    """
    if agent is None:
        return ReplyRemarks([], explain_invalid=False)
    form = agent["format"]
    least = _OFTEN if any(row["format_valid"] and row["understood"] for row in turns) else _MOST
    invalid = [*_thinking(turns, form, least), *_calls_as_text(turns, form, least)]
    return ReplyRemarks([*invalid, *_no_room(episodes)], bool(invalid))


def _thinking(turns: Sequence[Row], form: Mapping[str, Any], least: float) -> Iterator[str]:
    """Reasoning that is followed by no action in the reply format."""
    share = _share(turns, lambda row: bool(row["reasoning"]) and row["fault"] == "format")
    if share >= least and form.get("think") is False:
        yield (
            f"{share:.1%} of the replies reason and give no action in the form that was asked for: "
            "--agent.format.think true asks for both"
        )


def _calls_as_text(turns: Sequence[Row], form: Mapping[str, Any], least: float) -> Iterator[str]:
    """A server that does not read its model's calls passes them on as words."""
    share = _share(turns, lambda row: row["action"].startswith(("<tool_call>", "[TOOL_CALLS]", "<|tool_call")))
    if form["name"] == "native_tools" and share >= least:
        yield (
            f"{share:.1%} of the replies write tool calls as text: start the server with a parser for its model's "
            "calls (vLLM: --enable-auto-tool-choice --tool-call-parser NAME), or give --agent.format tool_call"
        )


def _no_room(episodes: Sequence[Row]) -> Iterator[str]:
    """A server refuses the first prompt of an episode because of the reply that it would have to keep room for."""
    share = _share(episodes, lambda row: row["cause"] == "context" and not row["turns"])
    if share:
        yield (
            f"{share:.1%} of the episodes were truncated by their context before the first reply: room is kept for "
            "the longest reply, so give --sampling.max-tokens less"
        )


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float:
    return sum(map(holds, rows)) / len(rows) if rows else 0.0
