"""Combinations of stages that cannot work, or in which one does nothing: each is refused with the reason and the fix.

A rule takes a CreditConfig whose stages are valid by themselves, and returns why it is refused, or None.
"""

from typing import Any

from manyturn.envs.contract.options import Rule
from manyturn.envs.contract.turn import OUTCOME

_BY_ENTROPY = frozenset({"empg", "entropy_weight"})


def _turn_weights_on_tokens(credit: Any) -> str | None:
    if credit.modulation and credit.advantage.by_token:
        return (
            f"{credit.modulation[0].name} weighs turns, but {credit.advantage.name} gives credit to tokens: take an "
            "advantage of turns, such as turn_gae or gigpo, or leave the modulation out"
        )
    return None


def _weighed_by_entropy_twice(credit: Any) -> str | None:
    names = [stage.name for stage in credit.modulation if stage.name in _BY_ENTROPY]
    if len(names) > 1:
        return f"{names[0]} and {names[1]} both weigh turns by their entropy, against each other: leave one out"
    return None


def _parts_in_order(credit: Any) -> str | None:
    """A stage that names a part of the reward stands behind what adds it, and before what empties it."""
    for place, stage in enumerate(credit.rewards):
        named = stage.named_parts()
        later = {part: other.name for other in credit.rewards[place:] for part in other.adds}
        if early := sorted(named & later.keys()):
            return f"{stage.name} names the part {early[0]!r}, which {later[early[0]]} adds: put it behind that stage"
        if OUTCOME in named and "spa" in {other.name for other in credit.rewards[:place]}:
            return (
                f"{stage.name} looks at the outcome, which spa has paid out before it and left at 0: put it before "
                "spa, or name the part 'contribution'"
            )
    return None


OF_CREDIT: tuple[Rule, ...] = (_turn_weights_on_tokens, _weighed_by_entropy_twice, _parts_in_order)
