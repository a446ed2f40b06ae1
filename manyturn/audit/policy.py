"""The policy of an audit with the environment that it plays: scripted, a function, or a language model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyturn.agents.play.agent import Agent
from manyturn.api.named_policy import find_policy
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.endpoint.protocols.registry import PROTOCOLS
from manyturn.terminal.event_loop import result_of
from manyturn.trainers.credit_audit.agent_player import AgentAuditPlayer
from manyturn.trainers.credit_audit.audit_loop import Jobs
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.rewindable_env import World
from manyturn.trainers.credit_audit.task_executor import OwnJobs, SpreadJobs
from manyturn.trainers.credit_audit.text_player import AuditPlayer, MovesPlayer
from manyturn.trainers.credit_audit.text_policies import moves_of

_ELSEWHERE = (*PROTOCOLS, "replay")  # policies that say nothing again


@dataclass(frozen=True)
class AuditedPolicy:
    """A policy, ready to play.

    Attributes:
        word: what names it, for processes of their own; None where nothing does.
        tasks: by id, in the order of the split.
    """

    env: str
    env_args: Mapping[str, Any]
    name: str
    word: str | None
    player: AuditPlayer
    tasks: Mapping[str, Task]
    workers: int

    def jobs(self, config: AuditConfig, critic: bool) -> Jobs:
        """The work of an audit with it."""
        if self.workers and self.word is not None:
            return SpreadJobs(self.env, self.env_args, self.word, config, critic, self.workers)
        return OwnJobs(self.player, self.tasks, config, critic)


@contextmanager
def audited_policy(
    policy: Any, env: str, env_args: Mapping[str, Any] | None, workers: int, config: AuditConfig
) -> Iterator[AuditedPolicy]:
    """A policy that is loaded, and given back in the end.

    Raises:
        ValueError: there is no such policy, it cannot be continued from the middle of an episode, or it cannot be
            spread over workers.
    """
    moves = moves_of(policy)
    if moves is not None:
        if workers and not isinstance(policy, str):
            raise ValueError("a function is of this process: name it as FILE.py:FUNCTION, or leave workers out")
        world = _world(env, env_args, config)
        player, tasks = MovesPlayer(world, moves, config), _tasks(world, config)
        try:
            word = policy if isinstance(policy, str) else None
            yield AuditedPolicy(env, dict(env_args or {}), moves.name, word, player, tasks, workers)
        finally:
            player.close()
        return
    if workers:
        raise ValueError(f"{policy} draws with one engine, in this process: leave workers out")
    near = near_names(policy.partition(":")[0], ("random", "expert"), n=1, cutoff=0.75)
    if near and not Path(policy).exists():
        raise ValueError(f"there is no policy {policy!r}: did you mean {near[0]}?")
    with _language_model(policy) as (agent, trained_on, trained_args):
        if fault := agent.config.refuse_inner("an audit continues episodes from their actions"):
            raise ValueError(fault)
        args = dict(trained_args if env_args is None and trained_on == env else env_args or {})
        world = _world(env, args, config)
        player = AgentAuditPlayer(agent, lambda: _world(env, args, config), config)
        try:
            yield AuditedPolicy(env, args, agent.name, None, player, _tasks(world, config), 0)
        finally:
            world.close()
            player.close()


@contextmanager
def _language_model(word: str) -> Iterator[tuple[Agent, str | None, Mapping[str, Any]]]:
    """An agent with its engine, and the environment that it was trained on, with its arguments."""
    refusal = (
        f"{word} cannot go on from the middle of an episode: audit random, expert, expert:0.5, FILE.py:FUNCTION, a "
        "run's folder or a model on this machine"
    )
    if word.partition(":")[0] in _ELSEWHERE:
        raise ValueError(refusal)
    candidate = find_policy(word, {})
    engines: Sequence[Any] = candidate.engines
    try:
        if not isinstance(candidate.policy, Agent):
            raise ValueError(refusal)
        own = not candidate.foreign_code  # else the arguments are for the user to give
        yield candidate.policy, candidate.env if own else None, (candidate.env_args or {}) if own else {}
    finally:
        for engine in engines:
            result_of(engine.shutdown())


def _world(env: str, args: Mapping[str, Any] | None, config: AuditConfig) -> World:
    return World(env, args, config)


def _tasks(world: World, config: AuditConfig) -> dict[str, Task]:
    return {task.id: task for task in world.tasks(config.split, config.tasks)}
