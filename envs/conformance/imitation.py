"""Check of demonstrations: can an agent that sees what it is shown imitate the expert?"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from manyturn.envs.conformance.probe import ProbedEpisode, Subject
from manyturn.envs.conformance.verdicts import Doubt, Result, Skip


class _Move(NamedTuple):
    """An expert's action, and a hash of all that the role which took it had seen and done."""

    history: str
    action: str
    task: str
    turn: int


def imitation(subject: Subject) -> Result:
    """The expert goes by what an agent sees: after the same history it acts the same in all tasks."""
    if not subject.handle.has_expert:
        raise Skip("no expert to imitate")
    episodes = [played for many in subject.expert_episodes.values() for played in many]
    moves = [move for played in episodes for move in _moves(played)]
    if not moves:
        raise subject.causes.first
    by_history = dict[str, dict[str, _Move]]()
    for move in moves:
        by_history.setdefault(move.history, {}).setdefault(move.action, move)
    ambiguous = [move for move in moves if len(by_history[move.history]) > 1]
    figures = {"ambiguous": len(ambiguous) / len(moves)}
    if not ambiguous:
        return f"{len(moves)} turns, and no history with two actions", figures
    one, two, *_ = by_history[ambiguous[0].history].values()
    raise Doubt(
        f"in {figures['ambiguous']:.1%} of its turns the expert does this in one task and that in another after the "
        f"same instructions, observations and actions, such as {one.action!r:.60} in {one.task} and "
        f"{two.action!r:.60} in {two.task} at turn {one.turn}: where only one of them is right, an agent cannot see "
        "what the expert goes by, so show it; where both are, it can learn either",
        figures,
    )


def _moves(played: ProbedEpisode) -> Iterator[_Move]:
    """The expert's moves of an episode; each role sees its own observations and actions."""
    seen = dict[str, str]()
    for turn, (step, action) in enumerate(zip(played.steps, played.actions, strict=False), start=1):
        history = _extended(seen.get(step.role, _extended(step.role, played.instructions)), step.observation)
        yield _Move(history, action, played.task.id, turn)
        seen[step.role] = _extended(history, action)


def _extended(history: str, text: str) -> str:
    return hashlib.sha256(f"{history} {text}".encode(errors="surrogatepass")).hexdigest()
