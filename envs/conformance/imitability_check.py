"""Check of demonstrations: can an agent that sees what it is shown imitate the expert?"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from manyturn.envs.conformance.probe_episodes import LONGEST, ProbedEpisode, Subject, by_expert
from manyturn.envs.conformance.verdicts import Doubt, Result, Skip
from manyturn.envs.hosting.handle.env_handle import EnvError

_MORE, _QUICK_SECONDS = 10, 0.005  # times as many episodes, where a turn takes less than that
_TRIED = 10  # histories in which the expert's actions of two tasks are exchanged


class _Move(NamedTuple):
    """An expert's action, and a hash of all that the role which took it had seen and done."""

    history: str
    action: str
    played: ProbedEpisode
    turn: int


def imitation(subject: Subject) -> Result:
    """The expert goes by what an agent sees: after the same history it acts the same in all tasks."""
    if not subject.handle.has_expert:
        raise Skip("no expert to imitate")
    moves = [move for played in _episodes(subject) for move in _moves(played)]
    if not moves:
        raise subject.causes.first
    by_history = dict[str, dict[str, _Move]]()
    for move in moves:
        by_history.setdefault(move.history, {}).setdefault(move.action, move)
    times = Counter(move.history for move in moves)  # in as many tasks: a history grows within an episode
    shared = sum(times[move.history] > 1 for move in moves)
    ambiguous = sum(len(by_history[move.history]) > 1 for move in moves)
    figures = {"ambiguous": ambiguous / len(moves), "shared": shared / len(moves)}
    if not shared:
        return f"{len(moves)} turns of the expert, and no history that two tasks share to compare them by", figures
    pairs = [list(actions.values())[:2] for actions in by_history.values() if len(actions) > 1]
    hidden = (pair for pair in pairs[:_TRIED] if _is_worse(subject, *pair) or _is_worse(subject, *pair[::-1]))
    for one, two in islice(hidden, 1):
        raise Doubt(
            f"in {figures['ambiguous']:.1%} of its turns the expert acts in two ways after the same instructions, "
            f"observations and actions, such as {one.action!r:.60} in {one.played.task.id} and {two.action!r:.60} in "
            f"{two.played.task.id}, at turn {one.turn}: an agent cannot see what the expert goes by, so show it, "
            "unless each of them is right in its own way",
            figures,
        )
    if pairs:
        return "where it acts in two ways after the same history, both lead to the goal as soon", figures
    return (
        f"{shared} of {len(moves)} turns share their history with another task, and the expert acts the same",
        figures,
    )


def _episodes(subject: Subject) -> list[ProbedEpisode]:
    """Episodes of the expert, one of each task: more than other checks need, for tasks must share a history."""
    episodes = {played.task.id: played for many in subject.expert_episodes.values() for played in many}
    if subject.splits and subject.turn_seconds < _QUICK_SECONDS:
        more = subject.some_tasks(_MORE * subject.samples, subject.splits[0])
        episodes |= {task.id: subject.play(task, by_expert) for task in more if task.id not in episodes}
    return list(episodes.values())


def _moves(played: ProbedEpisode) -> Iterator[_Move]:
    """The expert's moves of an episode; each role sees its own observations and actions."""
    seen = dict[str, str]()
    for turn, (step, action) in enumerate(zip(played.steps, played.actions, strict=False), start=1):
        history = _extended(seen.get(step.role, _extended(step.role, played.instructions)), step.observation)
        yield _Move(history, action, played, turn)
        seen[step.role] = _extended(history, action)


def _extended(history: str, text: str) -> str:
    return hashlib.sha256(f"{history} {text}".encode(errors="surrogatepass")).hexdigest()


def _is_worse(subject: Subject, move: _Move, other: _Move) -> bool:
    """True unless the other task's action is seen to lead to the goal in this task too, and as soon."""
    handle, played = subject.fresh(), move.played
    try:
        handle.reset(played.task, played.seed)
        for action in played.actions[: move.turn - 1]:
            handle.step(action)
        step, turns = handle.step(other.action), move.turn
        while not step.ended and turns < LONGEST:
            step, turns = handle.step(handle.expert()), turns + 1
    except EnvError:
        return True
    return not (step.success and turns <= len(played.actions))
