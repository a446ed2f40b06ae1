"""Episodes: one attempt at a task, what was said and rewarded at each turn, and how it ended."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, runtime_checkable

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.env.error_location import show_if_debugging
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, PlaceLost
from manyturn.envs.hosting.local.seats import Seat, WorkerError


class Ending(StrEnum):
    """Every episode ends in exactly one of these."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"
    TAMPERED = "tampered"  # the environment found its result forged
    ENV_ERROR = "env_error"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"

    @property
    def is_error(self) -> bool:
        return self in (Ending.ENV_ERROR, Ending.INFRA_ERROR, Ending.CANCELLED)


class LimitReached(RuntimeError):
    """A limit of the policy's ends the episode, which is truncated, not failed.

    Attributes:
        cause: the limit.
    """

    cause = ""


class ContextFull(LimitReached):
    """The prompt has outgrown what the policy can read."""

    cause = "context"


class TokensSpent(LimitReached):
    """The episode has used up its tokens."""

    cause = "tokens"


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply that used all of its tokens; no part of it is an action.

    Attributes:
        tokens: at which it was cut.
        ends: end the episode; else the policy is shown a line about it, and answers again.
    """

    tokens: int
    ends: bool = False

    @property
    def notice(self) -> str:
        """The line that the policy is shown."""
        return f"Your reply was cut at {self.tokens} tokens; nothing was done."


@dataclass(frozen=True, slots=True)
class Act:
    """One reply of a policy, and the action that it means.

    Attributes:
        reply: the text of its reply.
        action: what it means.
        format_valid: whether the reply format found an action in it.
        pieces: the reply token by token; empty for policies without tokens.
        usage: what the reply took, if it was counted.
        reasoning: of the reply, which is no part of the action.
        cut: set if the reply used all of its tokens. The environment is not asked then.
        fault: why the reply means nothing, by one of ``FAULTS``; None if it means something.
        inner: kind of an inner turn, which the environment does not see; empty for an action.
        shown: text that the policy read since its last reply, where that was not the observation alone.
    """

    reply: str
    action: str
    format_valid: bool = True
    pieces: tuple[str, ...] = ()
    usage: Usage | None = None
    reasoning: str = ""
    cut: Cut | None = None
    fault: str | None = None
    inner: str = ""
    shown: str | None = None


FAULTS = ("cut", "filtered", "refused", "empty", "arguments", "format")
"""Why a reply means nothing: it used all its tokens, its server withheld it, its model declined, it had no words, its
call's arguments cannot be read, or it is not in the reply format."""


class Player(Protocol):
    """A policy within one episode."""

    @property
    def ledger(self) -> Ledger | None:
        """The tokens of the turns so far; None for policies without tokens."""
        ...

    async def act(self, step: Answer, seat: Seat) -> Act:
        """Answer the observation of ``step``."""
        ...

    def leave(self) -> None:
        """The episode is over."""


@runtime_checkable
class Onlooker(Protocol):
    """A player that reads the observation at which a limit of turns cut the episode off; it is not answered."""

    def look(self, step: Answer) -> None: ...


@runtime_checkable
class Counting(Protocol):
    """A player with counts of its own, which stand among the measures of the episode."""

    @property
    def measures(self) -> Mapping[str, float]:
        """The counts so far, by name."""
        ...


class Policy(Protocol):
    """Anything that can play: a language model, an expert, a random policy.

    No more episodes are open together than get on, so that each comes to its end soon and an interruption costs few.
    One that can answer only so many at a time says so in an attribute ``concurrency``; one that never waits, and keeps
    everything else waiting while it answers, in an attribute ``blocks`` that is True.
    """

    @property
    def name(self) -> str:
        """The name of the policy in tables."""
        ...

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        """Begin an episode."""
        ...


def most_open(policy: Policy, processes: int) -> int | None:
    """Most episodes of a policy that may be open together; None without a limit.

    Args:
        processes: how many host environments.
    """
    concurrency = getattr(policy, "concurrency", None)
    return processes if concurrency is None and getattr(policy, "blocks", False) else concurrency


@dataclass(slots=True)
class TurnRecord:
    """One turn: what was seen, what was said, what it brought.

    Attributes:
        format_valid: whether an action could be read from the reply, by the reply format and by the environment.
        understood: whether the action meant anything to the environment.
        anchor: hash of the situation in which the policy acted.
        progress: the environment's progress after the turn, if it reports any.
        seconds: (policy, environment) time.
        pieces: the reply's T tokens as text, for those who read; empty for policies without tokens.
        role: who acted, in an episode of several roles.
        usage: what the reply took, if it was counted.
        choices: how many admissible commands there were, if the environment lists them.
        anchor_text: the situation in which the policy acted as text, if there is one.
        reasoning: of the reply.
        fault: why the reply meant nothing, by one of ``FAULTS``; None if it meant something.
        inner: kind of an inner turn, such as "plan": the environment did not see its reply; empty for an action.
    """

    observation: str
    reply: str
    action: str
    format_valid: bool
    understood: bool
    reward: float
    parts: dict[str, float]
    anchor: str
    progress: float | None
    seconds: tuple[float, float]
    pieces: tuple[str, ...] = ()
    role: str = ONE_ROLE
    usage: Usage | None = None
    choices: int | None = None
    anchor_text: str | None = None
    reasoning: str = ""
    fault: str | None = None
    inner: str = ""

    @property
    def valid(self) -> bool:
        """True if the format was kept and the action was understood."""
        return self.format_valid and self.understood


@dataclass
class Episode:
    """One attempt at a task.

    Attributes:
        turns: K turns, inner turns among them.
        ending: how it ended; errors are not failures and have no return.
        cause: the limit that truncated it (turns, context, tokens, cut), or the error's text, after how many attempts
            were made.
        success: whether the goal was reached; None after an error, and where it is not known.
        last: the final observation.
        answer: the action that gives the true answer, if the environment names one; the policy does not see it.
        measures: further figures of the environment's and of the player's by name, known at the end.
        bystander: it ended in an error because its process did, while that was busy with another episode.
        refused: it ended in an error that another attempt would meet again.
        guidance: the text that was added to its first observation; empty where none was.
        replayed: training steps since it was drawn, where a later step learns from it; None in the step that drew it.
    """

    key: EpisodeKey
    task: Task
    turns: list[TurnRecord] = field(default_factory=list)
    ending: Ending = Ending.CANCELLED
    cause: str = ""
    success: bool | None = None
    last: str = ""
    ledger: Ledger | None = None
    attempts: int = 1
    answer: str | None = None
    measures: dict[str, float] = field(default_factory=dict)
    bystander: bool = False
    refused: bool = False
    guidance: str = ""
    replayed: int | None = None

    @property
    def actions(self) -> int:
        """Number of turns that are no inner turns: those that a limit of turns counts."""
        return sum(not turn.inner for turn in self.turns)

    @property
    def outcome(self) -> float:
        """Sum of rewards; NaN after an error, which is never a reward, and where a reward could not be known."""
        return float("nan") if self.ending.is_error else float(sum(turn.reward for turn in self.turns))


async def play(
    seat: Seat,
    policy: Policy,
    task: Task,
    key: EpisodeKey,
    instructions: str,
    max_turns: int,
    watch: Callable[[Episode], None] = lambda episode: None,
) -> Episode:
    """Play one episode to its end. Errors of the environment or the engine become its ending, never a reward.

    Args:
        max_turns: truncates environments that have no limit of their own; inner turns are not counted.
        watch: receives the episode before its first turn.
    """
    episode = Episode(key, task)
    watch(episode)
    player = policy.player(key, instructions)
    try:
        step = await seat.reset(task, key.reset_seed())
        episode.answer = step.answer
        seen, cut = step, None
        while not (step.ended or (cut and cut.ends)) and episode.actions < max_turns:
            # A cut reply or an inner turn does not reach the environment, which stands where it stood.
            step, cut = await _turn(episode, player, seat, step)
            if episode.turns[-1].inner:
                continue
            seen = seen if cut else step
            if cut:
                step = seen._replace(observation=f"{cut.notice}\n\n{seen.observation}")
        ended = Ending.TAMPERED if step.measures.get(Ending.TAMPERED) else Ending.COMPLETED
        episode.ending = ended if step.terminated else Ending.TRUNCATED
        episode.cause = "" if step.terminated else "cut" if cut and cut.ends else "turns"
        episode.success = step.success if step.ended or math.isnan(episode.outcome) else False
        episode.last, episode.measures = step.observation, dict(step.measures)
        if not step.terminated and isinstance(player, Onlooker):
            player.look(step)
    except LimitReached as full:
        episode.ending, episode.cause, episode.success = Ending.TRUNCATED, full.cause, False
        episode.last = str(full)
    except EnvError as error:
        show_if_debugging(error)
        episode.ending = Ending.INFRA_ERROR if isinstance(error, PlaceLost) else Ending.ENV_ERROR
        episode.cause = str(error)
    except (EngineError, WorkerError) as error:
        show_if_debugging(error)
        episode.ending, episode.cause = Ending.INFRA_ERROR, str(error)
        episode.bystander = isinstance(error, WorkerError) and error.bystander
        episode.refused = isinstance(error, EngineRefused)
    except asyncio.CancelledError:
        episode.cause = "cancelled"
        raise
    finally:
        episode.ledger = player.ledger
        if isinstance(player, Counting):
            episode.measures |= player.measures
        player.leave()
    return episode


async def _turn(
    episode: Episode, player: Player, seat: Seat, step: Answer, clock: Callable[[], float] = time.perf_counter
) -> tuple[Answer, Cut | None]:
    began = clock()
    act = await player.act(step, seat)
    replied = clock()
    # The one place that decides whether a reply acts.
    if act.inner:
        episode.turns.append(_inner_turn(step, act, replied - began))
        return step, None
    if act.cut is None:
        after = await seat.step(act.action)
    else:
        act = replace(act, action="", format_valid=False, fault="cut")
        after = step._replace(reward=0.0, parts={}, format_valid=False, understood=False)
    episode.turns.append(
        TurnRecord(
            observation=step.observation if act.shown is None else act.shown,
            reply=act.reply,
            action=act.action,
            format_valid=act.format_valid and after.format_valid,
            understood=after.understood,
            reward=after.reward,
            parts=dict(after.parts),
            anchor=step.anchor,
            progress=after.progress,
            seconds=(replied - began, clock() - replied),
            pieces=act.pieces,
            role=step.role,
            usage=act.usage,
            choices=None if step.admissible is None else len(step.admissible),
            anchor_text=step.anchor_text,
            reasoning=act.reasoning,
            fault=act.fault,
        )
    )
    return after, act.cut


def _inner_turn(step: Answer, act: Act, seconds: float) -> TurnRecord:
    """The record of an inner turn, which earns nothing and is in no way invalid."""
    return TurnRecord(
        observation=step.observation if act.shown is None else act.shown,
        reply=act.reply,
        action="",
        format_valid=True,
        understood=True,
        reward=0.0,
        parts={},
        anchor=step.anchor,
        progress=None,
        seconds=(seconds, 0.0),
        pieces=act.pieces,
        role=step.role,
        usage=act.usage,
        anchor_text=step.anchor_text,
        inner=act.inner,
    )
