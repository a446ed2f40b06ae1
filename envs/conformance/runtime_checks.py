"""Checks of how an environment runs: each takes a ``Subject`` and returns what it saw, or raises a verdict."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from gymnasium.error import ResetNeeded

from manyturn.envs.conformance.difference import difference
from manyturn.envs.conformance.probe_episodes import (
    LONGEST,
    ODD_ACTIONS,
    ProbedEpisode,
    Subject,
    by_random_policy,
    text_env_of,
)
from manyturn.envs.conformance.root_causes import TURNS
from manyturn.envs.conformance.verdicts import Doubt, Fault, Implied, Result
from manyturn.envs.contract.env.space_containment import refuse_excluded
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import OUTCOME, ContractError
from manyturn.envs.contract.options.plugins import load_plugins
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.envs.hosting.handle.gymnasium_adapter import offered
from manyturn.envs.hosting.handle.info_key_check import misspelt_keys
from manyturn.envs.hosting.local.seats import WorkerSeats
from manyturn.envs.hosting.local.worker import START_SECONDS

ANCHORS = ("anchor", "anchor_text")  # of an answer; they have a check of their own


def made(subject: Subject) -> Result:
    """It can be made, reads and writes text, and has a task."""
    load_plugins()
    kind = type(subject.handle.env.unwrapped).__name__
    if not subject.splits and not subject.causes.blames:
        raise Fault("it has no task: tasks(split) of each of its splits is empty, so return mt.Task objects there")
    lacks = offered(subject.handle.env, "lacks")
    description = f"a foreign Gymnasium environment{f'; {lacks}' if lacks else ''}"
    return f"{kind}, {'a TextEnv' if subject.text_env else description}", {}


def turns(subject: Subject) -> Result:
    """Episodes can be played: what its methods return is allowed, and nothing raises."""
    subject.raise_own(TURNS)
    episodes = subject.whim_episodes
    return f"{sum(len(played.actions) for played in episodes)} in {len(episodes)} episodes", {}


def spaces(subject: Subject) -> Result:
    """Observations, commands and the expert's actions lie within the spaces."""
    env = subject.handle.env
    subject.raise_own("spaces")
    try:
        for played in subject.whim_episodes:
            for step in played.steps:
                refuse_excluded(env.observation_space, "observation", step.observation, "its own ")
                for action in step.admissible or ():
                    refuse_excluded(env.action_space, "action", action, "the admissible ")
    except ContractError as error:
        raise Fault(str(error)) from error
    return f"{len(subject.whim_episodes)} episodes within them", {}


def determinism(subject: Subject) -> Result:
    """Task, seed and actions decide everything, for any history of the instance."""
    other = subject.fresh()
    for played in subject.whim_episodes:
        # An instance that has just left another episode unfinished must not remember it.
        with suppress(EnvError):
            step = other.reset(subject.whim_episodes[-1].task, 1)
            if not step.ended:
                other.step(by_random_policy(other, step, generator("leave", subject.seed)))
        try:
            again = subject.replay(played, other)
        except (EnvError, ResetNeeded) as error:
            subject.varies = "tasks" if subject.is_changing else "determinism"
            _needs_same_tasks(subject)
            raise Fault(f"task {played.task.id}: the same actions raised the second time: {error}") from error
        if differs := difference(played.task, played.steps, again, ANCHORS):
            subject.varies = "tasks" if subject.is_changing else "determinism"
            _needs_same_tasks(subject)
            raise Fault(
                f"the same actions again differ: episode of {differs}; draw random numbers from self.rng only, and set "
                "all state in begin()"
            )
    return f"{len(subject.whim_episodes)} episodes the same in a second instance", {}


def _needs_determinism(subject: Subject) -> None:
    if subject.varies:
        raise Implied(subject.varies)


def _needs_same_tasks(subject: Subject) -> None:
    if subject.is_changing:
        raise Implied("tasks")


def _but_anchors(subject: Subject) -> tuple[str, ...]:
    """Names that need not agree: anchors, where their own check has failed."""
    return ANCHORS if "anchors" in subject.failed else ()


def other_process(subject: Subject) -> Result:
    """The same in a process of its own: no order of sets, no hash(), no id()."""
    _needs_determinism(subject)
    episodes = subject.whim_episodes[:3]  # before the thread: an environment may be bound to the one that made it

    async def replay() -> list[list[Answer]]:
        apart = WorkerSeats(subject.name, subject.kwargs, limit=1, workers=1, timeout=subject.timeout)
        async with apart as seats, seats.take() as seat:
            runs = []
            beat(2 + math.ceil(START_SECONDS / subject.timeout))  # the worker starts, and its own deadline says more
            for played in episodes:
                steps = [await seat.reset(played.task, played.seed)]
                for action in played.actions:
                    beat(2)
                    steps.append(await seat.step(action))
                beat(2)
                runs.append(steps)
            return runs

    with ThreadPoolExecutor(1) as thread:  # a loop of its own, also where the caller runs one already
        runs = thread.submit(lambda: asyncio.run(replay())).result()
    for played, steps in zip(episodes, runs, strict=True):
        if differs := difference(played.task, played.steps, steps, _but_anchors(subject)):
            _needs_same_tasks(subject)
            raise Fault(
                f"another process differs: episode of {differs}; sort sets before use, and use "
                "manyturn.envs.contract.random_keys.digest, not hash()"
            )
    return f"{len(runs)} episodes the same in a worker process", {}


def odd_actions(subject: Subject) -> Result:
    """An agent may write anything."""
    handle, first = subject.fresh(), subject.whim_episodes[0]
    slowest = 0.0
    for kind, action in ODD_ACTIONS.items():
        handle.reset(first.task, first.seed)
        start = time.perf_counter()
        try:
            handle.step(action)
        except EnvError as error:
            raise _odd(kind, error) from error
        slowest = max(slowest, time.perf_counter() - start)
    try:
        subject.raise_own("odd actions")
    except EnvError as error:
        raise _odd("no command", error) from error
    return ", ".join(ODD_ACTIONS), {"slowest ms": slowest * 1e3}


def _odd(kind: str, error: EnvError) -> Fault:
    return Fault(f"{kind}: {error}; answer what is not understood with self.invalid(...)")


def snapshot(subject: Subject) -> Result:
    """A fresh instance continues from a snapshot as if nothing had happened."""
    _needs_determinism(subject)
    biggest = 0
    for number, played in enumerate(subject.whim_episodes):
        turns = len(played.actions) * (number % 3) // 2  # at the start, in the middle and at the end
        turns = max(0, min(turns, len(played.actions) - 1))
        first, second = subject.fresh(), subject.fresh()
        one, two = text_env_of(first), text_env_of(second)
        assert one is not None and two is not None
        before = subject.replay(played, first, turns)
        second.reset(
            subject.whim_episodes[0].task, subject.whim_episodes[0].seed
        )  # some of Gymnasium's wrappers refuse a step without it
        data = one.snapshot()
        if not isinstance(data, bytes):
            raise Fault(f"snapshot() returns {type(data).__name__}: return bytes")
        biggest = max(biggest, len(data))
        two.restore(data)
        rest = played.actions[turns:]
        original = before + [first.step(action) for action in rest]
        copy = before + [second.step(action) for action in rest]
        for steps, what in ((original, "taking a snapshot changed the episode"), (copy, "a restored episode differs")):
            if differs := difference(played.task, played.steps, steps, _but_anchors(subject)):
                fix = "save() and load() must cover all state that begin() and respond() set"
                raise Fault(f"{what}: {differs}; {fix}")
    return f"{len(subject.whim_episodes)} episodes continued in a fresh instance", {"bytes": float(biggest)}


def rewards(subject: Subject) -> Result:
    """Named parts sum to the reward; the outcome comes at the end and only there."""
    seen, unknown, episodes = set[str](), dict[int, str](), list(subject.all_episodes())
    for played in episodes:
        for turn, step in enumerate(played.steps):
            seen.update(step.parts)
            where = f"task {played.task.id}, turn {turn}"
            if math.isnan(step.reward):
                unknown.setdefault(id(played), f"{where}: {_unknown(step)}")
                continue
            if not math.isclose(sum(step.parts.values()), step.reward, rel_tol=1e-9, abs_tol=1e-9):
                _needs_parts(subject, played)
                raise Fault(f"{where}: the parts {dict(step.parts)} do not sum to the reward {step.reward}")
            if OUTCOME in step.parts and not step.ended:
                raise Fault(f"{where}: 'outcome' before the end; give the reward of a turn another name")
    listed = subject.text_env.part_names if subject.text_env else None
    owners = {name.rpartition(".")[0] for name in seen} - {""}
    if strangers := sorted(owners - set(roles)) if len(roles := subject.handle.roles) > 1 else []:
        raise Fault(f"parts of {', '.join(strangers)} belong to no role: the roles are {', '.join(roles)}")
    if listed is not None and seen - {OUTCOME, *listed}:
        raise Fault(f"part_names does not list {', '.join(sorted(seen - {OUTCOME, *listed}))}")
    if unknown:
        count = len(episodes)
        share = {"without a return": len(unknown) / count}
        text = f"{next(iter(unknown.values()))}, so {len(unknown)} of {count} episodes have no return and teach nothing"
        raise (Fault if len(unknown) > count / 2 else Doubt)(f"{text}: give a number where there is one", share)
    return f"parts seen: {', '.join(sorted(seen)) or 'none'}", {}


def _needs_parts(subject: Subject, played: ProbedEpisode) -> None:
    """Raise the fault of 'info' where it lacks the parts, since then nothing is to be said about them."""
    if subject.text_env is None:
        return
    for turn, (info, _) in enumerate(_infos(subject.text_env, played)):
        if "reward_parts" not in info:
            error = _lacks(turn, ["reward_parts"])
            subject.causes.note(error, "info")
            raise error


def _lacks(turn: int, keys: Iterable[str]) -> Fault:
    return Fault(f"turn {turn}: info lacks {', '.join(sorted(keys))}; do not override step() or reset()")


def _unknown(step: Answer) -> str:
    names = [name for name, value in step.parts.items() if math.isnan(value)]
    return f"the part {names[0]!r} is nan" if names else "the reward is nan"


def ends(subject: Subject) -> Result:
    """Terminated and truncated are never both true, and max_turns truncates."""
    subject.raise_own("ends")
    longest = 0
    for played in subject.all_episodes():
        longest = max(longest, len(played.actions))
        if played.steps[-1].terminated and played.steps[-1].truncated:
            raise Fault(f"task {played.task.id}: both terminated and truncated; self.succeed and self.fail terminate")
    env = text_env_of(handle := subject.fresh())
    if env is not None:
        if longest > env.max_turns:
            raise Fault(f"an episode of {longest} turns, but max_turns is {env.max_turns}; do not override step()")
        played, action = subject.first_action
        env.max_turns = 1
        handle.reset(played.task, played.seed)
        step = handle.step(action)
        if not step.ended or (step.terminated and step.truncated):
            raise Fault("with max_turns = 1 the first turn does not truncate; do not override step()")
    elif handle.foreign is not None and handle.foreign.max_turns is None:
        _doubt_limit(handle, longest)
    return "", {"longest episode": float(longest)}


def _doubt_limit(handle: EnvHandle, longest: int) -> None:
    """Raise Doubt where a limit of the environment's own may never be reached."""
    fix = "set max_turns on the class, or max_episode_steps where it is registered"
    if not isinstance(handle.env.action_space, TextSpace):
        raise Doubt(
            "actions outside of the action space never reach the environment, so a limit of its own does not count "
            f"them: {fix}, which does"
        )
    if longest >= LONGEST:
        raise Doubt(f"an episode has not ended after {longest} turns: {fix}")


def info_keys(subject: Subject) -> Result:
    """The stable keys of info."""
    env = subject.text_env
    if env is None:
        return _foreign_keys(subject)
    for played in subject.whim_episodes:
        for turn, (info, ended) in enumerate(_infos(env, played)):
            missing = {"task", "split", "turn", "format_valid", "understood", "reward_parts", "anchor"} - set(info)
            if missing:
                raise _lacks(turn, missing)
            if (info["task"], info["split"], info["turn"]) != (played.task.id, played.task.split, turn):
                raise Fault(f"turn {turn}: info says {info['task']}, {info['split']}, turn {info['turn']}")
            if ("success" in info) != ended and "ends" not in subject.failed:
                raise Fault(f"turn {turn}: info['success'] belongs to the last turn and to no other")
            if not 0 <= info.get("progress", 0.0) <= 1:
                raise Fault(f"turn {turn}: progress is {info['progress']}; it is a share, from 0 to 1")
    return "all keys on every turn", {}


def _infos(env: TextEnv, played: ProbedEpisode) -> Iterator[tuple[dict[str, Any], bool]]:
    """``info`` of each turn of an episode that is played again, and if it ended there."""
    yield env.reset(seed=played.seed, options={"task": played.task.id})[1], False
    for action in played.actions:
        beat()
        *_, terminated, truncated, info = env.step(action)
        yield info, terminated or truncated
        if terminated or truncated:  # it may be random
            return


def _foreign_keys(subject: Subject) -> Result:
    """Raise Doubt where a plain environment's key is nearly one that would be read."""
    env, keys = subject.handle.env, set[Any]()
    for played in subject.whim_episodes[:3]:
        keys |= env.reset(seed=played.seed)[1].keys()
        for action in played.actions:
            beat()
            _, _, terminated, truncated, info = env.step(action)
            keys |= info.keys()
            if terminated or truncated:  # the seed draws another task where the environment lists its own
                break
    if misspelt := misspelt_keys(keys):
        raise Doubt("; ".join(f"info[{key!r}] is not read: {ours!r} is" for key, ours in misspelt.items()))
    return f"{', '.join(sorted(map(str, keys)))}", {}


def anchors(subject: Subject) -> Result:
    """The same situation has the same anchor, and different ones are distinguished."""
    _needs_determinism(subject)
    other = subject.fresh()
    shared = turns = 0
    for played in subject.whim_episodes:
        again = subject.replay(played, other)
        if any(getattr(one, name) != getattr(two, name) for one, two in _pairs(again, played) for name in ANCHORS):
            raise Fault(f"task {played.task.id}: anchor() differs for the same actions: build it from the state alone")
        texts, keys = ({getattr(step, name) for step in played.steps} for name in ("observation", "anchor"))
        if len(texts) > 2 and len(keys) == 1:
            raise Fault(f"task {played.task.id}: one anchor for {len(texts)} observations: put the state into anchor()")
        shared += len(played.steps) - len({step.anchor for step in played.steps})
        turns += len(played.steps)
    return "", {"met again": shared / turns}


def _pairs(again: list[Answer], played: ProbedEpisode) -> Iterator[tuple[Answer, Answer]]:
    return zip(again, played.steps, strict=True)
