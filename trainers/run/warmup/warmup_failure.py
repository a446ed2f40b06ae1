"""Causes of a warm-up without a success: the one cause that its figures speak for, and what to change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyturn.agents.play.episode import Episode
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.demonstrations import Demonstrations

_MOST = 0.5  # share of replies from which their fault is the cause
_FALLS = 0.9  # of the loss half-way: below, the warm-up was still learning
_STANDS = 4  # measurements without progress that are a plateau
_ROSE = 1.2  # times the loss of the first update
_BY_HEART = 0.1  # nats a token, where the loss stands
_NOTHING_LEFT = 1e-3  # nats a token: what still falls there is no more learning


@dataclass(frozen=True)
class Measurement:
    """The state of the warm-up at one measurement.

    Attributes:
        loss: mean over the updates since the measurement before, and over the policies.
        metrics: those on validation tasks.
    """

    update: int
    loss: float
    metrics: Mapping[str, Any]


def without_success(run: Run, history: Sequence[Measurement], played: Sequence[Episode], shown: Demonstrations) -> str:
    """The reason why a warm-up had no success.

    Args:
        history: the loss of its first update, and its measurements.
        played: the episodes of the last one.
        shown: what was imitated.
    """
    last = history[-1]
    shares = [f"{name} {last.metrics[name]:.0%}" for name in ("invalid", "cut") if last.metrics.get(name) is not None]
    return (
        f"the warm-up ended after {last.update} updates without a success on {len(played)} validation tasks "
        f"({', '.join([*shares, f'loss {last.loss:.2g} a token'])}): {_cause(run, history, played, shown)}. "
        "With --warmup.must-succeed false the run goes on all the same"
    )


def plateau(run: Run, history: Sequence[Measurement], played: Sequence[Episode], shown: Demonstrations) -> str | None:
    """The sentence about a warm-up that no longer improves; None while it does, or too little is known.

    Args:
        history, played, shown: as for ``without_success``.
    """
    if len(history) <= _STANDS:
        return None
    recent, earlier = history[-_STANDS:], history[1:-_STANDS]
    best, before = (max((m.metrics.get("success") or 0.0 for m in part), default=0.0) for part in (recent, earlier))
    last, first = history[-1].loss, recent[0].loss
    if best > before or (last < _FALLS * first and last > _NOTHING_LEFT):
        return None
    return (
        f"the warm-up stands at success {best:.2f} since update {recent[0].update}: "
        f"{_cause(run, history, played, shown)}"
    )


def _cause(run: Run, history: Sequence[Measurement], played: Sequence[Episode], shown: Demonstrations) -> str:
    config, last, middle = run.config.warmup, history[-1], history[len(history) // 2]
    if last.loss > _ROSE * history[0].loss:
        return f"the loss was {history[0].loss:.2g} when it began and rose: lower warmup.lr = {config.lr:g}"
    falls = middle is last or (last.loss < _FALLS * middle.loss and last.loss > _NOTHING_LEFT)
    cut, invalid = (last.metrics.get(name) or 0.0 for name in ("cut", "invalid"))
    example = _reply(played, cut=cut >= _MOST)
    what = ""
    if cut >= _MOST:
        what = f"replies do not end, as {example!r:.80}, where demonstrated ones have at most {shown.longest} tokens; "
    elif invalid >= _MOST:
        what = f"replies mean nothing to format or environment, as {example!r:.80}, where one of those shown is "
        what += f"{shown.reply!r:.80}; "
    if falls:
        so_far = "" if middle is last else f" (from {middle.loss:.2g} at update {middle.update})"
        return f"{what}the loss still falls{so_far}: raise warmup.max_updates = {config.max_updates}"
    if last.loss < _BY_HEART:
        more = (
            f"raise warmup.episodes = {config.episodes}, or give the split train more tasks than its {len(run.train)}"
        )
        return f"{what}the demonstrations are learnt by heart, and validation tasks need something else: " + (
            "imitate more trajectories" if config.trajectories is not None else more
        )
    stands = f"the loss stands at {last.loss:.2g} since update {middle.update}"
    if what:
        return f"{what}{stands}: change warmup.lr = {config.lr:g}, or take a larger model"
    if config.trajectories is not None:
        return f"replies are valid and {stands}: imitate other trajectories, or take a larger model"
    noise = f" (a share of warmup.noise = {config.noise:g} of its moves is random, too)" if config.noise else ""
    return (
        f"replies are valid and {stands}: what was demonstrated cannot be told from what the policy sees. Let the "
        f"expert go by observations alone{noise}"
    )


def _reply(played: Sequence[Episode], *, cut: bool) -> str:
    """The first reply that was cut, or that was invalid."""
    turns = [turn for episode in played for turn in episode.turns]
    return next((turn.reply for turn in turns if (turn.usage and turn.usage.cut if cut else not turn.valid)), "")
