"""Hash of an environment's answers: its words and rules, beyond the task parameters that a panel's hash covers."""

from collections.abc import Sequence
from typing import Any

from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvHandle

_DIGITS = 9  # of rewards: what machines agree on


def recorded(handle: EnvHandle, task: Task, by_expert: bool) -> tuple[str, ...]:
    """The actions of one episode: the expert's, or random admissible ones."""
    rng, actions = generator("suite replay", task.id), list[str]()
    answer = handle.reset(task, seed=0)
    while not answer.ended:
        options = answer.admissible or ["look"]
        actions.append(handle.expert() if by_expert else options[int(rng.integers(len(options)))])
        answer = handle.step(actions[-1])
    return tuple(actions)


def answers_of(handle: EnvHandle, tasks: Sequence[Task], replays: Sequence[Sequence[str]]) -> str:
    """Hash of the rules and of what is answered to recorded actions.

    The actions are data, so a better expert does not change the hash. What does are the instructions, the limit of
    turns, and in the replayed episodes observations, admissible commands, rewards and ends.

    Args:
        tasks: N tasks.
        replays: actions for each of the first tasks.
    """
    transcripts = tuple(_transcript(handle, task, actions) for task, actions in zip(tasks, replays, strict=False))
    return digest("answers", handle.instructions, handle.max_turns, handle.roles, transcripts)


def _transcript(handle: EnvHandle, task: Task, actions: Sequence[str]) -> tuple[Any, ...]:
    answers = [handle.reset(task, seed=0)]
    for action in actions:
        if answers[-1].ended:
            break
        answers.append(handle.step(action))
    return tuple(map(_plain, answers))


def _plain(answer: Answer) -> tuple[Any, ...]:
    parts = {name: _rounded(value) for name, value in answer.parts.items()}
    ends = (answer.terminated, answer.truncated, answer.success)
    return (answer.observation, answer.admissible, _rounded(answer.reward), parts, answer.understood, ends)


def _rounded(value: float) -> float:
    return round(value, _DIGITS) + 0.0  # -0.0 and 0.0 are one reward
