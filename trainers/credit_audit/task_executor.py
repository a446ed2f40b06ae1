"""The work of an audit on tasks: in this process, or spread over several, with the same bits."""

import json
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.local.subprocess_call import OneShot
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.continuations import begun, extend
from manyturn.trainers.credit_audit.group_episodes import PlayedTask
from manyturn.trainers.credit_audit.rewindable_env import World
from manyturn.trainers.credit_audit.text_player import AuditPlayer, MovesPlayer
from manyturn.trainers.credit_audit.text_policies import moves_of

_TASK_SECONDS = 3600.0  # that one task may take in a process of its own, before it is taken for hung


class OwnJobs:
    """Does the work in this process.

    Args:
        player: plays with the policy.
        tasks: by id.
        critic: play those continuations too that a critic's values are made of.
    """

    def __init__(self, player: AuditPlayer, tasks: Mapping[str, Any], config: AuditConfig, critic: bool):
        self._player, self._tasks, self._config, self._critic = player, tasks, config, critic

    def begin(self, tasks: Sequence[str]) -> Iterator[PlayedTask]:
        return (begun(self._player, self._tasks[name], self._config, self._critic) for name in tasks)

    def extend(self, tasks: Sequence[tuple[PlayedTask, list[int]]]) -> Iterator[PlayedTask]:
        for played, more in tasks:
            extend(self._player, self._tasks[played.task], played, np.array(more))
            yield played


class SpreadJobs:
    """Does the work in several processes.

    Args:
        env, args: the environment, as ``World`` takes it.
        policy: a word that ``moves_of`` knows.
        workers: how many processes.
    """

    def __init__(
        self, env: str, args: Mapping[str, Any] | None, policy: str, config: AuditConfig, critic: bool, workers: int
    ):
        self._hello = hello_of(env, args)
        self._common = [env, dict(args or {}), policy, config.model_dump(mode="json"), critic]
        self._workers = workers

    def begin(self, tasks: Sequence[str]) -> Iterator[PlayedTask]:
        return self._spread([[name, None, []] for name in tasks])

    def extend(self, tasks: Sequence[tuple[PlayedTask, list[int]]]) -> Iterator[PlayedTask]:
        return self._spread([[played.task, played.plain(), more] for played, more in tasks])

    def _spread(self, work: Sequence[list[Any]]) -> Iterator[PlayedTask]:
        """Every worker takes each n-th task; what they finish comes in the order in which they do."""
        shares = [share for n in range(self._workers) if (share := work[n :: self._workers])]
        finished: queue.Queue[Any] = queue.Queue()

        def run(share: list[list[Any]]) -> None:
            try:
                args = (*self._common, json.loads(json.dumps(share)))
                with OneShot(work_on, args, self._hello, _TASK_SECONDS) as errand:
                    for value in errand:
                        finished.put(value)
                finished.put(None)
            except BaseException as error:
                finished.put(error)

        threads = [threading.Thread(target=run, args=(share,), daemon=True) for share in shares]
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            value = finished.get()
            if isinstance(value, BaseException):
                raise value
            if value is None:
                running -= 1
            else:
                yield PlayedTask.of_plain(value)


def work_on(
    env: str, args: dict[str, Any], policy: str, options: dict[str, Any], critic: bool, share: list[list[Any]]
) -> Iterator[Any]:
    """The work of one process: each task as plain values, as soon as it is done."""
    config = AuditConfig.model_validate(options)
    world = World(env, args, config)
    moves = moves_of(policy)
    assert moves is not None, "only policies without tokens are spread"
    tasks = {task.id: task for task in world.tasks(config.split, config.tasks)}
    jobs = OwnJobs(MovesPlayer(world, moves, config), tasks, config, critic)
    for name, played, more in share:
        if played is None:
            yield next(jobs.begin([name])).plain()
        else:
            yield next(jobs.extend([(PlayedTask.of_plain(played), more)])).plain()
