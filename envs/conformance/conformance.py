"""The conformance checks: each takes a ``Subject`` and returns what it saw, or raises ``Fault`` with the fix."""

import asyncio
import json
import math
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from manyturn.envs.conformance.probe import ODD_ACTIONS, ProbedEpisode, Subject, by_random_policy, by_whim, text_env_of
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.plugins import load_plugins
from manyturn.envs.contract.task import Task
from manyturn.envs.contract.turn import OUTCOME
from manyturn.envs.hosting.deadline import beat
from manyturn.envs.hosting.host import Answer, EnvError
from manyturn.envs.hosting.seats import WorkerSeats

EXPERT_AT_LEAST = 0.95
MARGIN = 0.2  # by which the expert must be above a random policy, or tasks teach nothing

Result = tuple[str, Mapping[str, float]]
CHECKS: dict[str, tuple[Callable[[Subject], Result], bool]] = {}


class Fault(AssertionError):
    """The environment breaks the contract; the text says how to fix it."""

    def __init__(self, text: str, figures: Mapping[str, float] | None = None):
        super().__init__(text)
        self.figures = figures or {}


class Skip(Exception):
    """The check does not apply; the text says why."""


def _check(name: str, text_env_only: bool = False):
    def add(run: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        CHECKS[name] = (run, text_env_only)
        return run

    return add


@_check("made")
def made(subject: Subject) -> Result:
    """It can be made, and reads and writes text."""
    load_plugins()
    kind = type(subject.host.env.unwrapped).__name__
    return f"{kind}, {'a TextEnv' if subject.text_env else 'a foreign Gymnasium environment'}", {}


@_check("gymnasium")
def gymnasium_checker(subject: Subject) -> Result:
    """Gymnasium's own checker, whose warnings count."""
    env = subject.fresh().env.unwrapped
    if env.spec is None:
        env.spec = EnvSpec("Checked-v0", entry_point=type(env), kwargs=dict(subject.kwargs))
    for asked in ("reset", "step"):
        setattr(env, asked, _beating(getattr(env, asked)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
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


def _first_difference(one: list[Answer], two: list[Answer]) -> str:
    for turn, (a, b) in enumerate(zip(one, two, strict=False)):
        for name in Answer._fields:
            if getattr(a, name) != getattr(b, name):
                return f"at turn {turn} {name} is {getattr(a, name)!r:.80} and then {getattr(b, name)!r:.80}"
    return f"one episode has {len(one) - 1} turns, the other {len(two) - 1}"


@_check("determinism")
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
        if again != played.steps:
            raise Fault(
                f"task {played.task.id}: {_first_difference(played.steps, again)}; "
                "draw random numbers from self.rng only, and set all state in begin()"
            )
    return f"{len(subject.whim_episodes)} episodes the same in a second instance", {}


@_check("other process")
def other_process(subject: Subject) -> Result:
    """The same in a process of its own: no order of sets, no hash(), no id()."""

    async def replay() -> list[list[Answer]]:
        apart = WorkerSeats(subject.name, subject.kwargs, limit=1, workers=1, timeout=subject.timeout)
        async with apart as seats, seats.take() as seat:
            runs = []
            for played in subject.whim_episodes[:3]:
                beat(2)  # the worker has its own deadline, and says more when it passes
                steps = [await seat.reset(played.task, played.seed)]
                for action in played.actions:
                    beat(2)
                    steps.append(await seat.step(action))
                runs.append(steps)
            return runs

    with ThreadPoolExecutor(1) as thread:  # a loop of its own, also where the caller runs one already
        runs = thread.submit(lambda: asyncio.run(replay())).result()
    for played, steps in zip(subject.whim_episodes, runs, strict=False):
        if steps != played.steps:
            raise Fault(
                f"task {played.task.id}: {_first_difference(played.steps, steps)}; "
                "sort sets before use, and use manyturn.envs.contract.keys.digest, not hash()"
            )
    return f"{len(runs)} episodes the same in a worker process", {}


@_check("odd actions")
def odd_actions(subject: Subject) -> Result:
    """An agent may write anything."""
    host = subject.fresh()
    task = subject.a_few_tasks()[0]
    slowest = 0.0
    for kind, action in ODD_ACTIONS.items():
        host.reset(task, subject.seed)
        start = time.perf_counter()
        try:
            host.step(action)
        except EnvError as error:
            raise Fault(f"{kind}: {error}; answer what is not understood with self.invalid(...)") from error
        slowest = max(slowest, time.perf_counter() - start)
    return ", ".join(ODD_ACTIONS), {"slowest ms": slowest * 1e3}


@_check("snapshot", text_env_only=True)
def snapshot(subject: Subject) -> Result:
    """A fresh instance continues from a snapshot as if nothing had happened."""
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
            if steps != played.steps:
                mend = "save() and load() must cover all state that begin() and respond() set"
                raise Fault(f"task {played.task.id}: {what}: {_first_difference(played.steps, steps)}; {mend}")
    return f"{len(subject.whim_episodes)} episodes continued in a fresh instance", {"bytes": float(biggest)}


@_check("rewards")
def rewards(subject: Subject) -> Result:
    """Named parts sum to the reward; the outcome comes at the end and only there."""
    seen: set[str] = set()
    for played in subject.all_episodes():
        for turn, step in enumerate(played.steps):
            seen.update(step.parts)
            where = f"task {played.task.id}, turn {turn}"
            if not math.isclose(sum(step.parts.values()), step.reward, rel_tol=1e-9, abs_tol=1e-9):
                raise Fault(f"{where}: the parts {dict(step.parts)} do not sum to the reward {step.reward}")
            if OUTCOME in step.parts and not step.ended:
                raise Fault(f"{where}: 'outcome' before the end; give the reward of a turn another name")
    listed = subject.text_env.part_names if subject.text_env else None
    owners = {name.rpartition(".")[0] for name in seen} - {""}
    if strangers := sorted(owners - set(roles)) if len(roles := subject.host.roles) > 1 else []:
        raise Fault(f"parts of {', '.join(strangers)} belong to no role: the roles are {', '.join(roles)}")
    if listed is not None and seen - {OUTCOME, *listed}:
        raise Fault(f"part_names does not list {', '.join(sorted(seen - {OUTCOME, *listed}))}")
    return f"parts seen: {', '.join(sorted(seen)) or 'none'}", {}


@_check("ends")
def ends(subject: Subject) -> Result:
    """Terminated and truncated are never both true, and max_turns truncates."""
    longest = 0
    for played in subject.all_episodes():
        longest = max(longest, len(played.actions))
        if played.steps[-1].terminated and played.steps[-1].truncated:
            raise Fault(f"task {played.task.id}: both terminated and truncated; self.succeed and self.fail terminate")
    env = text_env_of(host := subject.fresh())
    if env is not None:
        if longest > env.max_turns:
            raise Fault(f"an episode of {longest} turns, but max_turns is {env.max_turns}; do not override step()")
        env.max_turns = 1
        host.reset(subject.a_few_tasks()[0], subject.seed)
        step = host.step("xyzzy")
        if not step.ended or (step.terminated and step.truncated):
            raise Fault("with max_turns = 1 the first turn does not truncate; do not override step()")
    return "", {"longest episode": float(longest)}


@_check("info", text_env_only=True)
def info_keys(subject: Subject) -> Result:
    """The stable keys of info."""
    env = subject.text_env
    assert env is not None
    for played in subject.whim_episodes:
        infos = [env.reset(seed=played.seed, options={"task": played.task.id})[1]]
        infos += [env.step(action)[4] for action in played.actions]
        for turn, info in enumerate(infos):
            missing = {"task", "split", "turn", "valid", "reward_parts", "anchor"} - set(info)
            if missing:
                raise Fault(f"turn {turn}: info lacks {', '.join(sorted(missing))}; do not override step() or reset()")
            if (info["task"], info["split"], info["turn"]) != (played.task.id, played.task.split, turn):
                raise Fault(f"turn {turn}: info says {info['task']}, {info['split']}, turn {info['turn']}")
            if ("success" in info) != (turn > 0 and played.steps[turn].ended):
                raise Fault(f"turn {turn}: info['success'] belongs to the last turn and to no other")
            if not 0 <= info.get("progress", 0.0) <= 1:
                raise Fault(f"turn {turn}: progress is {info['progress']}; it is a share, from 0 to 1")
    return "all keys on every turn", {}


def _rate(episodes: list[ProbedEpisode]) -> float:
    known = [played.success for played in episodes if played.success is not None]
    if not known:
        raise Skip("success is not known: put 'success' into info at the end")
    return sum(known) / len(known)


@_check("expert")
def expert(subject: Subject) -> Result:
    """The expert reaches the goal, so every task can be solved."""
    if not subject.host.has_expert:
        raise Skip("no expert: override expert() to prove that tasks can be solved, and for demonstrations")
    rates = {split: _rate(episodes) for split, episodes in subject.expert_episodes.items()}
    for split, rate in rates.items():
        if rate < EXPERT_AT_LEAST:
            lost = [played.task.id for played in subject.expert_episodes[split] if not played.success]
            raise Fault(f"split {split}: the expert fails {len(lost)} tasks, such as {lost[0]}", rates)
    turns = [len(played.actions) for episodes in subject.expert_episodes.values() for played in episodes]
    return "", {**rates, "turns": sum(turns) / len(turns)}


@_check("random")
def random_policy(subject: Subject) -> Result:
    """Random admissible actions do worse than the expert."""
    episodes = [played for many in subject.random_episodes.values() for played in many]
    if not any(step.admissible for played in episodes for step in played.steps):
        raise Skip("no admissible actions are listed: override admissible() to learn what a random policy achieves")
    luck = _rate(episodes)
    if not subject.host.has_expert:
        raise Skip(f"no expert to compare with; a random policy succeeds in {luck:.0%}")
    best = _rate([played for many in subject.expert_episodes.values() for played in many])
    figures = {"random": luck, "expert": best}
    if luck > best - MARGIN:
        raise Fault("random actions do nearly as well as the expert: make tasks longer or max_turns smaller", figures)
    return "", figures


@_check("splits", text_env_only=True)
def splits(subject: Subject) -> Result:
    """No problem belongs to two splits."""
    owner: dict[str, Task] = {}
    counts: dict[str, float] = {}
    for split in subject.host.splits:
        sampled = subject.many_tasks(split)
        counts[split] = float(len(sampled))
        for task in sampled:
            first = owner.setdefault(task.content, task)
            if first.split != split:
                raise Fault(
                    f"{task.id} is the same problem as {first.id}: give a generated problem to the split "
                    "manyturn.envs.contract.task.split_of(content)"
                )
    return "tasks compared by content", counts


def _plain(task: Task) -> None:
    if not task.params:
        raise Fault(f"task {task.id} has no params: they determine the problem, and splits are compared by them")
    try:
        json.dumps(dict(task.params))
    except TypeError as error:
        raise Fault(f"task {task.id}: {error}; params are numbers, strings, lists and dicts") from error


@_check("tasks", text_env_only=True)
def tasks(subject: Subject) -> Result:
    """Same id, same problem: unique ids, found again, in another instance too."""
    env, other = subject.text_env, text_env_of(subject.fresh())
    assert env is not None and other is not None
    ids: dict[str, str] = {}
    found = 0
    for split in subject.host.splits:
        drawn = subject.many_tasks(split)
        if not drawn:
            raise Fault(f"split {split} has no tasks: leave it out of splits")
        for task in drawn:
            if ids.setdefault(task.id, task.content) != task.content:
                raise Fault(f"the id {task.id} names two problems: ids are unique over all splits")
            if task.split != split:
                raise Fault(f"task {task.id} says that its split is {task.split}, but it is listed in split {split}")
        for task in drawn[:: max(1, len(drawn) // 20)]:
            _plain(task)
            again = other.find(task.id)
            if (again.id, again.split, again.content) != (task.id, task.split, task.content):
                raise Fault(f"find({task.id!r}) returns another problem: a task must depend on its id alone")
            found += 1
    return f"{found} tasks found again by id in another instance", {}


@_check("leak", text_env_only=True)
def leak(subject: Subject) -> Result:
    """The answer stays hidden until the end."""
    if not any(played.answer for played in subject.all_episodes()):
        raise Skip("no answer(): override it where one text would give the solution away")
    for played in subject.all_episodes():
        for turn, step in enumerate(played.steps):
            if played.answer and not step.ended and played.answer in step.observation:
                raise Fault(f"task {played.task.id}, turn {turn}: the observation contains {played.answer!r}")
    return "the answer appears at the end only", {}


@_check("anchors")
def anchors(subject: Subject) -> Result:
    """The same situation has the same anchor, and different ones are distinguished."""
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


@_check("speed")
def speed(subject: Subject) -> Result:
    """How fast it is, one core, with the policy that mixes expert, random and nonsense."""
    played = subject.play(subject.a_few_tasks()[0], by_whim)
    host, count, resets = subject.fresh(), 0, 0
    in_reset = in_step = 0.0
    while resets < 3 or (in_step + in_reset < 0.3 and resets < 1000):
        start = time.perf_counter()
        host.reset(played.task, played.seed)
        middle = time.perf_counter()
        for action in played.actions:
            host.step(action)
        in_reset += middle - start
        in_step += time.perf_counter() - middle
        count, resets = count + len(played.actions), resets + 1
    return "", {"turns/s": count / in_step, "reset ms": in_reset / resets * 1e3}
