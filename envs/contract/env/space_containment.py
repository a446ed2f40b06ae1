"""The reason for which a space of texts excludes a text, and what to do about it."""

from typing import Any

from gymnasium import spaces

from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import ContractError, shown


class ExcludedText(ContractError):
    """A text of the environment's own that its own space excludes."""

    placed = True  # it is the class that is at fault, wherever it was noticed


def refuse_excluded(space: Any, what: str, text: object, whose: str) -> None:
    """Raise ContractError if what the environment itself gave is no text, ExcludedText if its space excludes it.

    Args:
        space: of the environment's observations or actions.
        what: ``"action"`` or ``"observation"``.
        text: what was given.
        whose: where it comes from, such as ``"the expert's "``.
    """
    if space.contains(text):
        return
    if not isinstance(text, str):
        raise ContractError(f"{whose}{what} is {shown(text)}: give text, a str")
    raise ExcludedText(f"your {what} space excludes {whose}{shown(text)}, {_reason(space, text, what)}")


def _reason(space: Any, text: str, what: str) -> str:
    if isinstance(space, TextSpace):
        size = f"which has {len(text):,} characters, and the space ends at {space.max_length:,}"
        return f"{size}: {'show less' if what == 'observation' else 'take shorter actions'}, or raise max_length"
    fix = "use manyturn.TextSpace()"
    if isinstance(space, spaces.Text):
        if strange := "".join(dict.fromkeys(sign for sign in text if sign not in space.character_set)):
            return f"whose {strange[:10]!r} is not in its charset: {fix}"
        if len(text) > space.max_length:
            return f"which has {len(text):,} characters, and max_length is {space.max_length:,}: {fix}"
        if len(text) < space.min_length:
            return f"which has {len(text):,} characters, and min_length is {space.min_length:,}: {fix}"
    return f"says {type(space).__name__}.contains(): {fix}"
