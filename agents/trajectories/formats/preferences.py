"""Preference pairs for DPO and its kin: a line for each, ``{"prompt": [...], "chosen": [...], "rejected": [...]}``.

The rule: of the episodes of one group, which had the same task in the same world, the one with the highest return is
preferred to the one with the lowest; of several, the first member. Episodes that ended in an error, were tampered with,
or whose return is not known are in no pair. A group whose returns are all the same gives none, and neither does one
whose two first prompts differ. Groups of several roles are compared role by role, by the episode's return.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from manyturn.agents.play.episode import Ending
from manyturn.agents.trajectories.conversation import RoleMessages, conversations
from manyturn.agents.trajectories.trajectory import Trajectory, canonical

LOST = "ids of tokens, log-probabilities, rewards of turns, and all episodes in between"
_LEFT_OUT = frozenset({Ending.TAMPERED, *(ending for ending in Ending if ending.is_error)})


def pairs_of(trajectories: Iterable[Trajectory]) -> Iterator[dict[str, Any]]:
    """The pairs, in the order in which groups begin."""
    groups: dict[tuple[Any, ...], list[Trajectory]] = {}
    for trajectory in trajectories:
        row = trajectory.episode
        if row["return"] is not None and Ending(row["ending"]) not in _LEFT_OUT:
            groups.setdefault((row["stage"], row["content"], row["seed"]), []).append(trajectory)
    for group in groups.values():
        ordered = sorted(group, key=lambda trajectory: (-trajectory.episode["return"], trajectory.episode["member"]))
        best = ordered[0]
        worst = min(ordered, key=lambda trajectory: (trajectory.episode["return"], trajectory.episode["member"]))
        if best.episode["return"] > worst.episode["return"]:
            yield from _pairs(best, worst)


def lines_of(trajectories: Iterable[Trajectory]) -> Iterator[str]:
    """A line for each pair."""
    return map(canonical, pairs_of(trajectories))


def _pairs(best: Trajectory, worst: Trajectory) -> Iterator[dict[str, Any]]:
    others = {conversation.role: conversation for conversation in conversations(worst)}
    for chosen in conversations(best):
        rejected = others.get(chosen.role)
        if rejected is None or _prompt(chosen) != _prompt(rejected):
            continue
        yield {
            "prompt": _prompt(chosen),
            "chosen": chosen.messages[len(_prompt(chosen)) :],
            "rejected": rejected.messages[len(_prompt(rejected)) :],
            "chosen_return": best.episode["return"],
            "rejected_return": worst.episode["return"],
            **{name: best.episode[name] for name in ("task", "content", "split", "stage")},
            "members": [best.episode["member"], worst.episode["member"]],
            "role": chosen.role,
        }


def _prompt(conversation: RoleMessages) -> list[dict[str, Any]]:
    """Messages before the first reply."""
    return conversation.messages[: -(2 * len(conversation.turns) - 1)]
