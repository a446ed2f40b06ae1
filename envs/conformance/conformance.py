"""Checks of how an environment runs: each takes a ``Subject`` and returns what it saw, or raises a verdict."""

import asyncio
import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from manyturn.envs.conformance.difference import difference
from manyturn.envs.conformance.probe import LONGEST, ODD_ACTIONS, Subject, by_random_policy, text_env_of
from manyturn.envs.conformance.verdicts import Doubt, Fault, Result, Skip
from manyturn.envs.contract.env.space import TextSpace
from manyturn.envs.contract.env.space_faults import refuse_excluded
from manyturn.envs.contract.env.turn import OUTCOME, ContractError
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.options.plugins import load_plugins
from manyturn.envs.contract.registration.environments import make
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.envs.hosting.handle.gymnasium_adapter import offered
from manyturn.envs.hosting.handle.gymnasium_info import misspelt_keys
from manyturn.envs.hosting.local.seats import WorkerSeats
from manyturn.envs.hosting.local.worker import START_SECONDS


def made(subject: Subject) -> Result:
    """It can be made, and reads and writes text."""
    load_plugins()
    kind = type(subject.handle.env.unwrapped).__name__
    lacks = offered(subject.handle.env, "lacks")
    description = f"a foreign Gymnasium environment{f'; {lacks}' if lacks else ''}"
    return f"{kind}, {'a TextEnv' if subject.text_env else description}", {}


def turns(subject: Subject) -> Result:
    """Episodes can be played: what its methods return is allowed, and nothing raises."""
    episodes = subject.whim_episodes
    return f"{sum(len(played.actions) for played in episodes)} in {len(episodes)} episodes", {}


def spaces(subject: Subject) -> Result:
    """Observations, commands and the expert's actions lie within the spaces."""
    env = subject.handle.env
    try:
        for played in subject.whim_episodes:
            for step in played.steps:
                refuse_excluded(env.observation_space, "observation", step.observation, "its own ")
                for action in step.admissible or ():
                    refuse_excluded(env.action_space, "action", action, "the admissible ")
    except ContractError as error:
        subject.is_excluded = True
        raise Fault(str(error)) from error
    return f"{len(subject.whim_episodes)} episodes within them", {}


def gymnasium_checker(subject: Subject) -> Result:
    """Gymnasium's own checker, whose warnings count."""
    if subject.is_excluded:
        raise Skip("it would say again what 'spaces' says")
    with suppress(EnvError):  # the checker meets it by itself
        if any(math.isnan(step.reward) for played in subject.whim_episodes for step in played.steps):
            raise Skip("it takes rewards that are nan for different ones: see 'rewards'")
    env = subject.fresh().env.unwrapped
    if env.spec is None:
        env.spec = EnvSpec("Checked-v0", entry_point=partial(make, subject.name), kwargs=dict(subject.kwargs))
    for method in ("reset", "step"):
        setattr(env, method, _beating(getattr(env, method)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env)
        except AssertionError as error:
            raise Fault(f"gymnasium.utils.env_checker.check_env says: {error}") from None
    if caught:
        raise Fault(f"gymnasium.utils.env_checker.check_env warns: {caught[0].message}")
    return "check_env without a warning", {}


def _beating(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Gymnasium's checker asks the bare environment, which knows no deadline."""

    @wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> Any:
        beat()
        return ask(*args, **kwargs)

    return asked


def determinism(subject: Subject) -> Result:
    """Task, seed and actions decide everything, for any history of the instance."""
    other = subject.fresh()
    for played in subject.whim_episodes:
        # An instance that has just left another episode unfinished must not remember it.
        step = other.reset(subject.a_few_tasks()[-1], 1)
        if not step.ended:
            other.step(by_random_policy(other, step, generator("leave", subject.seed)))
        try:
            again = subject.replay(played, other)
        except EnvError as error:
            raise Fault(f"task {played.task.id}: the same actions raised the second time: {error}") from error
        if differs := difference(played.task, played.steps, again):
            subject.is_random = True
            raise Fault(
                f"the same actions again differ: episode of {differs}; draw random numbers from self.rng only, and set "
                "all state in begin()"
            )
    return f"{len(subject.whim_episodes)} episodes the same in a second instance", {}


def _needs_determinism(subject: Subject) -> None:
    if subject.is_random:
        raise Skip("the same actions differ: see 'determinism'")


def other_process(subject: Subject) -> Result:
    """The same in a process of its own: no order of sets, no hash(), no id()."""
    _needs_determinism(subject)

    async def replay() -> list[list[Answer]]:
        apart = WorkerSeats(subject.name, subject.kwargs, limit=1, workers=1, timeout=subject.timeout)
        async with apart as seats, seats.take() as seat:
            runs = []
            beat(2 + math.ceil(START_SECONDS / subject.timeout))  # the worker starts, and its own deadline says more
            for played in subject.whim_episodes[:3]:
                steps = [await seat.reset(played.task, played.seed)]
                for action in played.actions:
                    beat(2)
                    steps.append(await seat.step(action))
                beat(2)
                runs.append(steps)
            return runs

    with ThreadPoolExecutor(1) as thread:  # a loop of its own, also where the caller runs one already
        runs = thread.submit(lambda: asyncio.run(replay())).result()
    for played, steps in zip(subject.whim_episodes, runs, strict=False):
        if differs := difference(played.task, played.steps, steps):
            raise Fault(
                f"another process differs: episode of {differs}; sort sets before use, and use "
                "manyturn.envs.contract.keys.digest, not hash()"
            )
    return f"{len(runs)} episodes the same in a worker process", {}


def odd_actions(subject: Subject) -> Result:
    """An agent may write anything."""
    handle = subject.fresh()
    task = subject.a_few_tasks()[0]
    slowest = 0.0
    for kind, action in ODD_ACTIONS.items():
        handle.reset(task, subject.seed)
        start = time.perf_counter()
        try:
            handle.step(action)
        except EnvError as error:
            raise Fault(f"{kind}: {error}; answer what is not understood with self.invalid(...)") from error
        slowest = max(slowest, time.perf_counter() - start)
    return ", ".join(ODD_ACTIONS), {"slowest ms": slowest * 1e3}


def snapshot(subject: Subject) -> Result:
    """A fresh instance continues from a snapshot as if nothing had happened."""
    _needs_determinism(subject)
    biggest = 0
    for number, played in enumerate(subject.whim_episodes):
        turns = len(played.actions) * (number % 3) // 2  # at the start, in the middle and at the end
        turns = min(turns, len(played.actions) - 1)
        first, second = subject.fresh(), subject.fresh()
        one, two = text_env_of(first), text_env_of(second)
        assert one is not None and two is not None
        before = subject.replay(played, first, turns)
        second.reset(subject.a_few_tasks()[0], 1)  # some of Gymnasium's wrappers refuse a step without it
        data = one.snapshot()
        if not isinstance(data, bytes):
            raise Fault(f"snapshot() returns {type(data).__name__}: return bytes")
        biggest = max(biggest, len(data))
        two.restore(data)
        rest = played.actions[turns:]
        original = before + [first.step(action) for action in rest]
        copy = before + [second.step(action) for action in rest]
        for steps, what in ((original, "taking a snapshot changed the episode"), (copy, "a restored episode differs")):
            if differs := difference(played.task, played.steps, steps):
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


def _unknown(step: Answer) -> str:
    names = [name for name, value in step.parts.items() if math.isnan(value)]
    return f"the part {names[0]!r} is nan" if names else "the reward is nan"


def ends(subject: Subject) -> Result:
    """Terminated and truncated are never both true, and max_turns truncates."""
    longest = 0
    for played in subject.all_episodes():
        longest = max(longest, len(played.actions))
        if played.steps[-1].terminated and played.steps[-1].truncated:
            raise Fault(f"task {played.task.id}: both terminated and truncated; self.succeed and self.fail terminate")
    env = text_env_of(handle := subject.fresh())
    if env is not None:
        if longest > env.max_turns:
            raise Fault(f"an episode of {longest} turns, but max_turns is {env.max_turns}; do not override step()")
        env.max_turns = 1
        handle.reset(subject.a_few_tasks()[0], subject.seed)
        step = handle.step("xyzzy")
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
        infos = [env.reset(seed=played.seed, options={"task": played.task.id})[1]]
        infos += [env.step(action)[4] for action in played.actions]
        for turn, info in enumerate(infos):
            missing = {"task", "split", "turn", "format_valid", "understood", "reward_parts", "anchor"} - set(info)
            if missing:
                raise Fault(f"turn {turn}: info lacks {', '.join(sorted(missing))}; do not override step() or reset()")
            if (info["task"], info["split"], info["turn"]) != (played.task.id, played.task.split, turn):
                raise Fault(f"turn {turn}: info says {info['task']}, {info['split']}, turn {info['turn']}")
            if ("success" in info) != (turn > 0 and played.steps[turn].ended):
                raise Fault(f"turn {turn}: info['success'] belongs to the last turn and to no other")
            if not 0 <= info.get("progress", 0.0) <= 1:
                raise Fault(f"turn {turn}: progress is {info['progress']}; it is a share, from 0 to 1")
    return "all keys on every turn", {}


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
        if [step.anchor for step in again] != [step.anchor for step in played.steps]:
            raise Fault(f"task {played.task.id}: anchor() differs for the same actions: build it from the state alone")
        texts, keys = ({getattr(step, name) for step in played.steps} for name in ("observation", "anchor"))
        if len(texts) > 2 and len(keys) == 1:
            raise Fault(f"task {played.task.id}: one anchor for {len(texts)} observations: put the state into anchor()")
        shared += len(played.steps) - len({step.anchor for step in played.steps})
        turns += len(played.steps)
    return "", {"met again": shared / turns}
