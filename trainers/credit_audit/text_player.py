"""Play of groups and continuations, one after the other in one process, for policies without tokens."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.trainers.credit.audit.effects import END
from manyturn.trainers.credit_audit.common_random_numbers import Noise, NoiseTable
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.group_episodes import GroupEpisode, GroupTurn, PlayedTask, Start
from manyturn.trainers.credit_audit.rewindable_env import Situation, World
from manyturn.trainers.credit_audit.text_policies import Moves

GROUP, TRUTH, CRITIC = "audit/group", "audit/truth", "audit/critic"  # what random numbers are for


class Wish(NamedTuple):
    """A continuation that is wanted: from which situation, for what, and its number."""

    situation: Situation
    stage: str
    number: int


class Continued(NamedTuple):
    """A continuation: the sum of its rewards, as much of it as counts, its first action, and its number of steps."""

    total: float
    counted: float
    first: str
    steps: int


class AuditPlayer(Protocol):
    """Plays what an audit asks for."""

    def group(self, task: Task) -> PlayedTask:
        """The episodes of a task's group, and the situations that they pass."""
        ...

    def continued(self, task: Task, wishes: Sequence[Wish]) -> list[Continued]:
        """Continuations from situations of the group, in the order of the wishes."""
        ...

    def close(self) -> None: ...


class StartTable:
    """The situations of a task that continuations start from, each once."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self._numbers: dict[tuple[str, str | None], int] = {}

    def number(self, situation: Situation, own: str = "") -> int:
        """The number of a situation; one that is there keeps its number.

        Args:
            own: tells situations apart whose snapshots are equal, where the policy remembers what it saw.
        """
        key = (own + situation.snapshot, situation.forced)
        if key not in self._numbers:
            self._numbers[key] = len(self.starts)
            self.starts.append(Start(situation))
        return self._numbers[key]


class MovesPlayer:
    """Plays with a policy that depends on nothing but the situation, so that equal situations are one start.

    Args:
        world: the environment.
        moves: the policy.
    """

    def __init__(self, world: World, moves: Moves, config: AuditConfig):
        moves.check(world)
        self._world, self._moves, self._config = world, moves, config
        self._noise: dict[tuple[str, str], NoiseTable] = {}

    def group(self, task: Task) -> PlayedTask:
        table = StartTable()
        episodes = [self._episode(task, member, table) for member in range(self._config.group)]
        return PlayedTask(task.id, episodes, table.starts)

    def continued(self, task: Task, wishes: Sequence[Wish]) -> list[Continued]:
        seed = self._reset_seed(task)
        return [self._continue(task, seed, wish) for wish in wishes]

    def close(self) -> None:
        self._world.close()

    def _reset_seed(self, task: Task) -> int:
        return EpisodeKey(self._config.seed, GROUP, task.id, 0).reset_seed()

    def _episode(self, task: Task, member: int, table: StartTable) -> GroupEpisode:
        world = self._world
        noise = Noise(EpisodeKey(self._config.seed, GROUP, task.id, member), world.max_turns)
        answer = world.begin(task, self._reset_seed(task))
        names_answer = answer.answer is not None
        start, turns = table.number(_situation(world, answer, 0)), list[GroupTurn]()
        while not answer.ended and len(turns) < world.max_turns:
            action = self._moves.act(world, answer.observation, answer.admissible, noise, len(turns))
            after, by_chance = world.play(action)
            over = after.ended or len(turns) + 1 == world.max_turns
            follows = END if over else table.number(_situation(world, after, len(turns) + 1))
            forced = table.number(table.starts[start].situation._replace(forced=action)) if by_chance else follows
            counted = world.counted(after.reward, after.parts)
            turn = played_turn(answer, action, after, counted)
            turns.append(replace(turn, start=start, after=forced, forced=by_chance))
            answer, start = after, follows
        return GroupEpisode(turns, not answer.terminated, answer.success, answer.observation, names_answer)

    def _continue(self, task: Task, seed: int, wish: Wish) -> Continued:
        situation, world, moves = wish.situation, self._world, self._moves
        noise = self._numbers(wish.stage, task.id)[wish.number]
        world.turn_to(task, seed, situation, noise.chance)
        observation, admissible, turn = situation.observation, situation.admissible, situation.turn
        first, total, counted, action = "", 0.0, 0.0, situation.forced
        try:
            while True:
                if action is None:
                    action = moves.act(world, observation, admissible, noise, turn)
                observation, reward, terminated, truncated, info = world.step(action)
                counted += world.counted(reward, info.get("reward_parts", {}))
                total, turn, first = total + reward, turn + 1, first or action
                if terminated or truncated or turn >= world.max_turns:
                    break
                admissible, action = info.get("admissible"), None
        except ValueError:
            raise
        except Exception as error:
            raise EnvError(f"{world.handle.name} raised in a continuation of {task.id}: {error}") from error
        return Continued(finite_return(total, task), counted, first, turn - situation.turn)

    def _numbers(self, stage: str, task: str) -> NoiseTable:
        if (stage, task) not in self._noise:
            self._noise = {key: table for key, table in self._noise.items() if key[1] == task}
            self._noise[stage, task] = NoiseTable(self._config.seed, stage, task, self._world.max_turns)
        return self._noise[stage, task]


def finite_return(total: float, task: Task) -> float:
    """A sum of rewards. Raises EnvError where one is not known: no effect can be estimated from it."""
    if math.isnan(total):
        raise EnvError(f"a reward in {task.id} is NaN: what is not scored has no effect that could be audited")
    return total


def played_turn(answer: Answer, action: str, after: Answer, counted: float) -> GroupTurn:
    """A turn as an audit records it, before it is known which situations it lies between."""
    return GroupTurn(
        observation=answer.observation,
        action=action,
        parts=dict(after.parts) or {"outcome": after.reward},
        format_valid=after.format_valid,
        understood=after.understood,
        anchor=answer.anchor,
        anchor_text=answer.anchor_text if isinstance(answer.anchor_text, str) else None,
        progress=after.progress,
        start=END,
        after=END,
        counted=counted,
    )


def _situation(world: World, answer: Answer, turn: int) -> Situation:
    return Situation(world.snapshot(), turn, answer.observation, answer.admissible)
