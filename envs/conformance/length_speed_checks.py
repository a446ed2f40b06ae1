"""Checks of what an environment costs: lengths of texts, and time."""

import re
import resource
import time
from dataclasses import dataclass
from typing import NamedTuple

from manyturn.envs.conformance.probe_episodes import ProbedEpisode, Subject
from manyturn.envs.conformance.verdicts import Doubt, Result

_LONG_REPLY = 64  # words and signs of a reply: what sampling.max_tokens allows where nothing else is said
_LONG_TEXT = 20_000  # characters of an observation: a context of 8,192 tokens holds one or two such
_SLOW_MS, _WAITING_MS = 100.0, 50.0  # for one turn
_ENOUGH, _TOO_LONG = 0.3, 3.0  # seconds of playing, for a figure, and at most


def lengths(subject: Subject) -> Result:
    """Replies and observations fit what models read and write."""
    longest = max((text for played in subject.all_episodes() for text in _observations(played)), key=_first)
    figures = {"longest observation": float(longest[0])}
    replies = [(_signs(text), len(text), played) for played in _by_expert(subject) for text in played.actions]
    doubts = []
    if longest[0] > _LONG_TEXT:
        where = f"task {longest[1].task.id}, turn {longest[2]}"
        doubts.append(
            f"an observation has {longest[0]:,} characters ({where}), which fills a model's context: show less"
        )
    if replies:
        signs, characters, played = max(replies, key=_first)
        figures |= {"longest reply": float(characters), "its words and signs": float(signs)}
        if signs > _LONG_REPLY:
            doubts.append(
                f"the expert's longest reply has {characters:,} characters (task {played.task.id}), {signs} words and "
                "signs: give sampling.max_tokens more than that"
            )
    if doubts:
        raise Doubt("; ".join(doubts), figures)
    return "", figures


def _first(pair: tuple) -> int:
    return pair[0]


def _observations(played: ProbedEpisode) -> list[tuple[int, ProbedEpisode, int]]:
    return [(len(step.observation), played, turn) for turn, step in enumerate(played.steps)]


def _by_expert(subject: Subject) -> list[ProbedEpisode]:
    return [played for many in subject.expert_episodes.values() for played in many]


def _signs(text: str) -> int:
    """About how many tokens a text has: words, and signs between them."""
    return len(re.findall(r"\w+|[^\w\s]", text))


@dataclass
class _Clock:
    """Adds up what calls take, by the clock and of the processor, and how often they waited."""

    seconds: float = 0.0
    busy: float = 0.0
    waits: int = 0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), *_used()

    def __exit__(self, *_: object) -> None:
        began, busy, waits = self._began
        now_busy, now_waits = _used()
        self.seconds += time.perf_counter() - began
        self.busy += now_busy - busy
        self.waits += now_waits - waits


def _used() -> tuple[float, int]:
    used = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
    return used.ru_utime + used.ru_stime, used.ru_nvcsw


class Pace(NamedTuple):
    """Time of resets and turns on one core, and their numbers."""

    reset: _Clock
    step: _Clock
    resets: int
    turns: int


def pace(subject: Subject) -> Pace:
    """Pace of the policy that mixes expert, random and nonsense."""
    played = subject.first_action[0]
    host, resets, turns = subject.fresh(), 0, 0
    reset, step = _Clock(), _Clock()
    while (seconds := reset.seconds + step.seconds) < _TOO_LONG and (
        resets < 3 or (seconds < _ENOUGH and resets < 1000)
    ):
        with reset:
            host.reset(played.task, played.seed)
        with step:
            for action in played.actions:
                turns += 1
                if host.step(action).ended:  # it may be random
                    break
        resets += 1
    return Pace(reset, step, resets, turns)


def speed(subject: Subject) -> Result:
    """Speed of an environment, split into computing and waiting."""
    reset, step, resets, turns = pace(subject)
    ms = step.seconds / turns * 1e3
    figures = {"turns/s": turns / step.seconds, "turn ms": ms, "reset ms": reset.seconds / resets * 1e3}
    if ms > _WAITING_MS and step.waits >= turns / 2 and step.busy < step.seconds / 2:
        raise Doubt(
            f"a turn takes {ms:,.0f} ms and waits for {1 - step.busy / step.seconds:.0%} of it, as for a network, a "
            "program or sleep: all other episodes of its process wait too, and training plays tens of thousands of "
            "turns; --env.workers N lets N of them wait at the same time",
            figures,
        )
    if ms > _SLOW_MS:
        text = "training plays tens of thousands: --env.workers N computes N of them at the same time"
        raise Doubt(f"a turn takes {ms:,.0f} ms, and {text}", figures)
    return "", figures
