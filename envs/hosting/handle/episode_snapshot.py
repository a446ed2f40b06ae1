"""A snapshot of the episode on a seat, as text that can cross a process boundary, and the way back to it.

An environment whose ``save()`` gives its state is restored from that. Any other one, and one within wrappers that may
have a state of their own, is begun again and given the same actions, at the cost of as many turns.

Either way the situation must be the one that was left: its text, its anchor and its admissible commands. If it is not,
``restore`` raises EnvError, and nothing that was played from there counts.
"""

import json
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import OrderEnforcing

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.envs.hosting.handle.messages import step_from_wire, step_to_wire, task_from_wire, task_to_wire


def take_snapshot(handle: EnvHandle) -> str:
    """The episode of an environment as it stands. Raises EnvError, and ResetNeeded before the first reset."""
    past = handle.past
    if past is None:
        raise ResetNeeded("there is no episode to take a snapshot of: call reset()")
    plain: dict[str, Any] = {"task": task_to_wire(past.task), "seed": past.seed, "answer": step_to_wire(past.last)}
    bare = _with_state(handle)
    if bare is None:
        return json.dumps({**plain, "actions": past.actions})
    state = handle.guarded("snapshot", bare.snapshot)
    return json.dumps({**plain, "actions": past.actions, "state": state.decode()})


def restore(handle: EnvHandle, snapshot: str) -> Answer:
    """Go back to a snapshot of the same environment.

    Returns:
        The answer that stood there.

    Raises:
        EnvError: the environment raised, or its situation differs from the one that was left.
    """
    plain = json.loads(snapshot)
    expected, task = step_from_wire(plain["answer"]), task_from_wire(plain["task"])
    bare = _with_state(handle)
    if bare is None or "state" not in plain:
        answer = handle.reset(task, plain["seed"])
        for action in plain["actions"]:
            answer = handle.step(action)
        _compare(handle, answer, expected)
    else:
        state: str = plain["state"]
        handle.guarded("restore", lambda: bare.restore(state.encode()))
        _compare(handle, handle.guarded("restore", lambda: handle.situation(expected)), expected)
    handle.stands_at(task, plain["seed"], plain["actions"], expected)
    return expected


def _compare(handle: EnvHandle, answer: Answer, expected: Answer) -> None:
    """Raise EnvError where the environment is not where it was."""
    for name in ("observation", "anchor", "admissible", "role", "ended"):
        if getattr(answer, name) != getattr(expected, name):
            raise EnvError(
                f"{handle.name} differs in its {name} after it was restored, so its episodes depend on more than "
                "task, seed and actions, or its save() leaves something out: leave --search out, or fix the "
                "environment (manyturn check tests this)"
            )


def _with_state(handle: EnvHandle) -> TextEnv | None:
    """The environment, if its own state is all the state that there is."""
    bare = handle.env.unwrapped
    if not isinstance(bare, TextEnv) or type(bare).save is TextEnv.save:
        return None
    return bare if all(isinstance(layer, OrderEnforcing) for layer in _layers(handle.env)) else None


def _layers(env: gymnasium.Env) -> Iterator[gymnasium.Env]:
    """The wrappers around an environment."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
