"""A turn as a server of OpenEnv tells it, checked: what is missing is missing, and what is wrong is an error."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.openenv.faults import BadAnswer, short

# A server of ours says all of these in the metadata of each turn, and no other server is taken at words of ours.
_OURS = frozenset({"task", "split", "seed", "turn", "ended", "truncated", "scored", "reward_parts", "understood"})


class ServedTurn(NamedTuple):
    """Result of a reset or a step.

    Attributes:
        reward: None if the server gives none.
        done, truncated: whether the episode is over, and whether a limit ended it.
        info: keys of ``info`` that the server knows.
    """

    observation: Any
    reward: float | None
    done: bool
    truncated: bool
    info: dict[str, Any]


def read_turn(data: Mapping[str, Any], turn: int) -> ServedTurn:
    """The turn that an answer tells. Raises BadAnswer.

    Args:
        turn: how many turns have been played, by our count.
    """
    observation, reward, done = data.get("observation"), data.get("reward"), data.get("done", False)
    if not isinstance(done, bool):
        raise BadAnswer(f"done is {short(done)}: true or false")
    if reward is not None and not _is_number(reward):
        raise BadAnswer(f"the reward is {short(reward)}, which is no finite number")
    facts = data.get("metadata")
    if facts is None and isinstance(observation, Mapping):
        facts = observation.get("metadata")
    facts = facts if isinstance(facts, Mapping) else {}
    number = None if reward is None else float(reward)
    if not facts.keys() >= _OURS:
        success = {"success": facts["success"]} if done and isinstance(facts.get("success"), bool) else {}
        return ServedTurn(observation, number, done, done and facts.get("truncated") is True, success)
    if facts["turn"] != turn:
        raise BadAnswer(f"the server has played {short(facts['turn'])} turns of this episode, and we {turn}")
    if facts.get("role", ONE_ROLE) != ONE_ROLE:
        raise BadAnswer(f"{short(facts['role'])} acts next: OpenEnv's protocol has no word for several roles")
    return ServedTurn(observation, number, done, done and facts["truncated"] is True, _info(facts, number, done))


def _info(facts: Mapping[str, Any], reward: float | None, done: bool) -> dict[str, Any]:
    """Facts of a turn from a manyturn server, as in ``info``."""
    parts, measures = _numbers(facts, "reward_parts"), _numbers(facts, "measures")
    if reward is not None and not math.isclose(sum(parts.values()), reward, rel_tol=1e-9, abs_tol=1e-9):
        raise BadAnswer(f"the parts {short(parts)} do not sum to the reward {reward}")
    listed, progress, anchor = facts.get("admissible"), facts.get("progress"), facts.get("anchor")
    if listed is not None and not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
        raise BadAnswer(f"admissible is {short(listed)}, which is no list of texts")
    if progress is not None and not _is_number(progress):
        raise BadAnswer(f"progress is {short(progress)}, which is no number")
    if not isinstance(anchor, str):
        raise BadAnswer(f"the anchor is {short(anchor)}, which is no text")
    # The anchor is a hash: as text it would be similar to nothing.
    info: dict[str, Any] = {"reward_parts": parts, "anchor": anchor, "anchor_text": None}
    info |= {flag: facts.get(flag) is not False for flag in ("understood", "format_valid")}
    info |= {"admissible": listed} if listed is not None else {}
    info |= {"progress": progress} if progress is not None else {}
    info |= {"measures": measures} if measures else {}
    return info | ({"success": facts["success"]} if done and isinstance(facts.get("success"), bool) else {})


def _numbers(facts: Mapping[str, Any], name: str) -> dict[str, float]:
    given = facts.get(name, {})
    if not isinstance(given, Mapping) or not all(value is None or _is_number(value) for value in given.values()):
        raise BadAnswer(f"{name} is {short(given)}: numbers by name")
    return {key: math.nan if value is None else float(value) for key, value in given.items()}


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False
