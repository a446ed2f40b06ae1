"""What a reader of an evaluation's figures would misunderstand, said in one line each."""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.agents.episode import Ending

_NEARLY_ALL = 0.995


def remarks(summary: Mapping[str, Any], invalid_explained: bool = False) -> list[str]:
    """Lines to go below the table of a summary.

    Args:
        summary: as ``summarise`` makes it.
        invalid_explained: say nothing about invalid replies, since another remark does.
    """
    invalid = () if invalid_explained else _invalid(summary)
    return [*_tampered(summary), *_limited(summary), *_cut(summary), *invalid, *_nothing_to_choose(summary)]


def _tampered(summary: Mapping[str, Any]) -> Iterator[str]:
    if count := summary["endings"].get(Ending.TAMPERED, 0):
        yield f"{count} of {summary['n_episodes']} episodes forged their result: no success, and nothing earned by it"


def _limited(summary: Mapping[str, Any]) -> Iterator[str]:
    if is_limited(summary):
        yield "every reply was limited to the admissible commands of its turn (agent.only_admissible)"


def is_limited(summary: Mapping[str, Any]) -> bool:
    """Whether an evaluation's replies could be nothing but admissible commands."""
    return bool((summary.get("agent") or {}).get("only_admissible"))


def _cut(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["cut_reply_rate"]:
        limit = (summary["sampling"] or {}).get("max_tokens")
        known = "their limit of tokens" if limit is None else f"sampling.max_tokens = {limit}"
        yield f"{summary['cut_reply_rate']:.1%} of the replies were cut at {known}: give --sampling.max-tokens more"


def _invalid(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["invalid_action_rate"] is None or summary["invalid_action_rate"] < _NEARLY_ALL:
        return
    agent, success = summary["agent"], summary["success"]["mean"]
    wanted = None if agent is None else agent["format"]
    if wanted is None or wanted["name"] == "free_text":
        yield (
            "every action is invalid: the environment says so of each"
            + (", and yet the goal is reached: see what its respond() calls invalid" if success else "")
        )
    elif success:
        yield (
            f"invalid and yet successful: no reply had {_form(wanted)}, so each was played as plain text; give "
            "--agent.format free_text if that is how the policy answers"
        )
    else:
        yield (
            f"every action is invalid: no reply had {_form(wanted)}, or the environment refused what it held; "
            "manyturn report shows the replies"
        )


def _form(wanted: Mapping[str, Any]) -> str:
    """What replies of a format hold."""
    return f"the tags <{wanted['tag']}>" if "tag" in wanted else f"the form of agent.format {wanted['name']}"


def _nothing_to_choose(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["policy"] == "random" and summary["choices"] is None:
        yield (
            "random had nothing to choose from: the environment lists no admissible commands, so it said random "
            "letters; a method admissible() makes it a floor to compare with"
        )
