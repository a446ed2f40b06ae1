"""The software environment: find and fix a fault in a program, in a sandbox, with the tools of a programmer."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manyturn.containers.sandbox import WORKSPACE, SandboxRefused, Snapshot, overrun_behind
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest, seed_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.container_engine_check import usable
from manyturn.envs.software import reward_levels
from manyturn.envs.software.grading.differential_testing import deck_of
from manyturn.envs.software.grading.grader import (
    RESOLVED,
    TAMPERED,
    TIMEOUT,
    UNRESOLVED,
    AgentTurn,
    Grade,
    grade,
    run_as_they_are,
)
from manyturn.envs.software.reward_levels import Steps
from manyturn.envs.software.source.file_tree import Changes, difference, patched, snapshot_of
from manyturn.envs.software.source.lru_cache import RecencyCache
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.source.text_sanitizer import bounded, harmless
from manyturn.envs.software.tasks.task_sources import Problems, problems_of, without_unreached
from manyturn.envs.software.testing.pytest_run import PytestRun
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.attempt import Attempt, Judge, schemas
from manyturn.envs.software.workspace.call_shorthand import call_of, line_of
from manyturn.envs.software.workspace.episode_sandbox import EpisodeSandbox, Files
from manyturn.envs.software.workspace.expert import Call
from manyturn.envs.tools.calls import BadCall, call_text, is_call, read_calls
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Answered

INSTRUCTIONS = f"""\
A program has a bug. Find it, fix it in the program's source files, and submit. You work in {WORKSPACE}, in a \
sandbox without a network. Tests decide whether the bug is fixed: failing tests must pass, and passing tests must \
still pass. They run on a clean copy with your changes to source files; changes to tests and settings do not count. \
Work that is not submitted does not count."""
LINES = """

Each turn, answer with one command line:
  view PATH FIRST LAST      show numbered lines of a file
  edit PATH 'OLD' 'NEW'     replace text that occurs exactly once in a file
  search 'PATTERN' PATH     find lines that match a regular expression
  bash COMMAND              run a command{test}
  submit                    submit your changes; this ends the task"""
_TEST_LINE = "\n  test                      run the tests"
ACTIONS, REWARDS = ("calls", "lines"), ("levels", "resolved")
TEST_SECONDS = 20.0  # of the processor's time, of one run of the tests
_LISTED = 5  # files that a random policy is told of
_grades, _runs, _packed = RecencyCache[Grade](512), RecencyCache[PytestRun](512), RecencyCache[Snapshot](32)


class Software(TextEnv):
    """Fix a fault in a program of many files; tests decide.

    Task:
        A released library with one to three faults put into its code, and a text that says what was seen. Other sources
        are drills for a beginner and problems of other projects.
    Observation:
        What the last tool printed; the first text is the problem's, with the names of the files. ``progress`` is the
        share of FAIL_TO_PASS tests that the agent has seen pass, or has handed in. The anchor is task, files, folder
        and observation.
    Actions:
        The tools ``view``, ``edit``, ``search``, ``bash``, ``test`` and ``submit``, as JSON calls or as command lines;
        either is understood. ``test`` is missing where the deciding tests are hidden.
    Reward:
        An outcome of 0 for nothing handed in, 0.1 for no change, 0.3 for tests that fail and 1 for tests that pass.
        Parts of turns come to 0.2 at most (``reward_levels.py``). ``resolved`` pays 0 or 1 and nothing else.
    End:
        ``submit`` ends the work; it is a success if the tests pass on a clean copy with the agent's changes of source
        files, and the program then computes what the tests ask for, on other inputs too (``grader.py``). A forged
        result counts as ``tampered`` and earns nothing. Nor does work that is not handed in by ``max_turns``.
    Splits:
        train, validation, test (libraries of their own), test_functions (other functions of train's libraries) and
        smoke (networkx: nothing to download). A split whose sources are missing is absent. Problems of other projects
        are all test. Train and smoke lack the tasks that are known to be passed by heart (``unreached``).
    Expert:
        Knows the fix: reproduces the fault, views, edits, tests, submits.
    Floors:
        On 98 tasks from all 15 libraries the expert succeeds in all; handing in nothing succeeds in none
        (``benchmarks/results/software_floors.json``).

    Args:
        split: default: train, or the first that there is.
        source: ``drills`` (see there), problems of another project, such as ``humanevalfix:PATH``, or ``tasks:FILE``
            from ``manyturn tasks software``; default: the faults in pinned libraries that manyturn has.
        difficulty: keep tasks of one difficulty: easy, medium or hard.
        actions: what instructions, expert and ``admissible`` write: ``calls`` (JSON) or ``lines``.
        reward: ``levels``, or ``resolved`` for an outcome of 0 or 1 and nothing else.
        engine: what sandboxes are made with: arguments of ``container_engine.ContainerEngine``, such as ``image``.
        max_turns: default 40.
        unreached: keep, in train and smoke too, the tasks whose fault no other inputs than their tests' own reach. A
            program that fixes nothing and knows the visible tests by heart is paid there (docs/grading-limits.md).

    Raises:
        NeedsSetup: there is no container engine, no image, or no sources of the libraries.
    """

    max_turns = 40
    waits_outside = True
    part_names = tuple(reward_levels.STEPS)
    harmless = (*TextEnv.harmless, "source:drills", "actions", "reward", "unreached")

    def __init__(
        self,
        split: str | None = None,
        source: str | None = None,
        difficulty: str | None = None,
        actions: str = "calls",
        reward: str = "levels",
        engine: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        unreached: bool = False,
    ):
        for what, given, allowed in (("actions", actions, ACTIONS), ("reward", reward, REWARDS)):
            if given not in allowed:
                raise ValueError(unknown(what, given, allowed))
        self._problems = self.problems(source, difficulty)
        self._engine = usable(engine, "software tasks")
        self._tasks = dict(self._problems.tasks) if unreached else without_unreached(self._problems.tasks)
        if not self._tasks:
            raise NeedsSetup("other inputs reach the fault of none of these tasks: give unreached = true to have them")
        self.splits = tuple(self._tasks)  # those that have tasks
        if split is None:
            split = "train" if "train" in self.splits else self.splits[0]
        self.absent = self._problems.absent
        if split in self.absent:
            raise NeedsSetup(f"the split {split} is absent: {self.absent[split]}")
        super().__init__(split, max_turns)
        self._lines, self._by_levels = actions == "lines", reward == "levels"
        self._shown = self._problems.shows_tests
        self.tools = schemas(self._shown)
        lines = LINES.format(test=_TEST_LINE if self._shown else "")
        self.instructions = INSTRUCTIONS + lines if self._lines else with_tools(INSTRUCTIONS, self.tools)
        self._work: Attempt | None = None  # None between episodes
        self._steps, self._level, self._tampered = Steps(), reward_levels.NOT_SUBMITTED, False
        self._reached: float | None = None
        self._official = False
        self._anchor: tuple[str, ...] = ()

    def problems(self, source: str | None, difficulty: str | None) -> Problems:
        """Source of the tasks; override it to bring others."""
        return problems_of(source, difficulty)

    @property
    def image(self) -> str:
        """The image of the sandboxes."""
        return self._engine.image

    def outcome_of(self, level: float) -> float:
        """Outcome of a level."""
        return level if self._by_levels else float(level == reward_levels.RESOLVED)

    def problem_of(self, task: Task) -> Problem:
        """Files, tests and fix of a task."""
        return self._problems.problem(task)

    def tasks(self, split: str) -> Sequence[Task]:
        if split in self.absent:
            raise NeedsSetup(f"the split {split} is absent: {self.absent[split]}")
        return self._tasks[split]

    def find(self, task_id: str) -> Task:
        try:
            return super().find(task_id)
        except KeyError:
            if all(task.id != task_id for tasks in self._problems.tasks.values() for task in tasks):
                raise
        raise KeyError(
            f"{task_id!r} is left out, since a memory of the visible tests passes it: give unreached = true to have it"
        )

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        problem = self._problems.problem(task)
        self._steps, self._level, self._tampered = Steps(), reward_levels.NOT_SUBMITTED, False
        self._reached, self._official = None, False
        self._sit_down(task, Files(self._pristine(task)))
        return bounded(first_text(problem))

    def respond(self, action: str) -> Turn:
        assert self._work is not None  # set by begin
        self._work.tools.budget.renew()
        try:
            return self._respond(self._work, action)
        except BaseException as error:
            self.close()  # whatever has failed there, it is not used again
            if (overrun := overrun_behind(error)) is None:
                raise
            # What the agent has run did that, so it is no error of the environment.
            return self.fail(f"The sandbox is lost, and the work with it: {overrun}.")

    def _respond(self, work: Attempt, action: str) -> Turn:
        answered = self._answer(work, action)
        work.look()
        parts = self._paid(work, answered)
        answered = answered._replace(text=harmless(answered.text))
        self._anchor = (work.key, work.tools.folder)
        if work.submitted or self.turn + 1 >= self.max_turns:
            self.close()
        if not work.submitted:
            return answered.turn(self, **parts)
        self._level, self._tampered = _level(work), work.grade is not None and work.grade.cause == TAMPERED
        self._reached = work.grade.reached if work.grade is not None and work.changed else None
        self._official = work.grade is not None and bool(work.changed) and work.grade.official
        if self._tampered and self._by_levels:
            parts = {name: parts.get(name, 0.0) + back for name, back in self._steps.take_back().items()}
        resolved = self._level == reward_levels.RESOLVED
        outcome = self.outcome_of(self._level)
        turn = (self.succeed if resolved else self.fail)(answered.text, outcome, **parts)
        return replace(turn, understood=answered.valid, format_valid=answered.readable)

    def _answer(self, work: Attempt, action: str) -> Answered:
        try:
            call = action if is_call(action) else call_of(action, self.tools)
            if any(request.name == "submit" for request in read_calls(call)[:-1]):
                raise BadCall("submit ends the task: no call can follow it")
        except BadCall as error:
            return Answered(f"Error: {error}", (), valid=False, readable=False)
        return work.toolset(self._shown).answer(call)

    def _paid(self, work: Attempt, answered: Answered) -> dict[str, float]:
        """The rewards of a turn."""
        reached = {"parsed": float(answered.valid), "ran": float(work.tools.ran), "edited": float(bool(work.changed))}
        if work.grade is not None and work.grade.cause != TAMPERED:
            share = len(work.grade.fixed) / len(work.problem.fail_to_pass)
            reached |= {"reproduced": float(bool(work.tested) and share < 1), "tests": share}
        paid = self._steps.pay(reached)
        return paid if self._by_levels else {}

    def anchor(self) -> tuple[str, ...]:
        return (self.task.id, *self._anchor, self.observation)

    def progress(self) -> float:
        return self._steps.shares.get("tests", 0.0)

    def admissible(self) -> list[str]:
        """Some calls that a random policy may try."""
        problem = self._problems.problem(self.task)
        paths = [path for path in sorted(problem.files) if problem.counts(path)][:_LISTED]
        calls: list[Call] = [("view", {"path": path}) for path in paths]
        calls += [("search", {"pattern": "return", "path": path}) for path in paths]
        calls += [("bash", {"command": command}) for command in ("ls -a", "pwd")]
        calls += [("edit", {"path": "notes.txt", "old": "", "new": "nothing found"})]
        calls += [*([("test", dict[str, Any]())] if self._shown else []), ("submit", {})]
        return [self._spelled(call) for call in calls]

    def expert(self) -> str:
        """The next action of an expert that knows the fix: reproduce, view, edit, test, submit."""
        assert self._work is not None
        return self._spelled(self._work.next_call(self._shown))

    def measures(self) -> dict[str, float]:
        """Completion and modification rates, as in the paper of G-RA: handed in, and handed in with changes.

        ``tampered`` is the rate of what was handed in with forged results; it is neither of the two. ``reached`` is the
        share of tests to make pass whose fault other inputs reach too. At 0 the grade rests on the visible tests alone.
        Work that was not challenged has none. ``official`` is the verdict of the tests as they are: what other projects
        report.
        """
        measures = {
            "completed": float(self._level > reward_levels.NOT_SUBMITTED),
            "modified": float(self._level > reward_levels.EMPTY),
            "tampered": float(self._tampered),
            "official": float(self._official),
        }
        return measures if self._reached is None else {**measures, "reached": self._reached}

    def save(self) -> bytes:
        """The files as far as they differ from the problem's; processes are not part of a snapshot."""
        state: dict[str, Any] = {"steps": self._steps.shares, "anchor": self._anchor}
        if (work := self._work) is not None:
            files = work.workspace.files()
            state["work"] = {
                **{"folder": work.tools.folder, "viewed": work.tools.viewed, "ran": work.tools.ran},
                **{"tested": work.tested, "scratch": base64.b64encode(files.scratch).decode()},
                "files": difference(self._pristine(self.task), files.workspace),
            }
        return zlib.compress(json.dumps(state).encode(), 1)

    def load(self, data: bytes) -> None:
        state = json.loads(zlib.decompress(data))
        self._steps = Steps(state["steps"])
        if "work" in state:
            self._take_up(state["work"])
        else:  # the episode has ended
            self.close()
        self._anchor = tuple(state["anchor"])

    def close(self) -> None:
        """Give the sandbox back."""
        if self._work is not None:
            self._work.workspace.close()
            self._work = None

    def _sit_down(self, task: Task, files: Files) -> Attempt:
        self.close()
        problem = self._problems.problem(task)
        workspace, budget = EpisodeSandbox(self._engine, files), TimeBudget()
        try:
            self._work = Attempt(problem, workspace, self._judge(problem, workspace, task, budget), budget)
        except BaseException:
            workspace.close()
            raise
        self._anchor = (self._work.key, self._work.tools.folder)
        return self._work

    def _judge(self, problem: Problem, workspace: EpisodeSandbox, task: Task, budget: TimeBudget) -> Judge:
        """Grades changes to a problem in a workspace's sandbox, each once in this process."""
        # The episode's own, and no draw from its generator: that is as it was after a snapshot is restored.
        seed = seed_of("software challenge", self._seed)
        of = self._engine.model_dump_json(), task.content
        hidden = not self._shown  # without the environment: one that is forgotten gives its sandbox back at once

        def judge(changes: Changes, back: bool) -> Grade:
            def run() -> Grade:
                with workspace.lent(back) as sandbox:
                    if hidden:
                        sandbox.spent = "what ran there saw hidden tests, and could leave word in the kernel's counters"
                    make = partial(run_as_they_are, sandbox, problem, changes, TEST_SECONDS, budget)
                    evidence = partial(_runs.made, digest(of, dict(changes)), make, lambda made: not made.timed_out)
                    try:
                        turn = AgentTurn(budget=budget, rehearsal=back, evidence=evidence)
                        return grade(sandbox, problem, changes, TEST_SECONDS, seed, turn)
                    except SandboxRefused as error:  # changes that leave no room for the challenge
                        return Grade(UNRESOLVED, str(error), (), problem.pass_to_pass, {})

            # The machine's speed has a part in a timeout; any other grade follows from what it is of.
            key = digest(of, deck_of(seed, rehearsal=back), dict(changes))
            return _grades.made(key, run, keep=lambda made: made.cause != TIMEOUT)

        return judge

    def _take_up(self, saved: Mapping[str, Any]) -> None:
        pristine = self._pristine(self.task)
        work = self._sit_down(self.task, Files(patched(pristine, saved["files"]), base64.b64decode(saved["scratch"])))
        work.tools.folder, work.tools.viewed, work.tools.ran = saved["folder"], saved["viewed"], saved["ran"]
        work.tested = saved["tested"]

    def _pristine(self, task: Task) -> Snapshot:
        """A task's files, packed once for all episodes of a group."""
        return _packed.made(task.content, lambda: snapshot_of(self._problems.problem(task).files))

    def _spelled(self, call: Call) -> str:
        name, arguments = call
        return line_of(name, **arguments) if self._lines else call_text(name, **arguments)


def first_text(problem: Problem) -> str:
    """First observation of a problem."""
    names = sorted({path.partition("/")[0] + "/" * ("/" in path) for path in problem.files})
    return f"{problem.statement.strip()}\n\n{WORKSPACE} holds: {'  '.join(names)}"


def _level(work: Attempt) -> float:
    """The outcome of work that was handed in."""
    if work.grade is None or not work.changed:
        return reward_levels.EMPTY
    if work.grade.cause == TAMPERED:
        return reward_levels.NOT_SUBMITTED
    return reward_levels.RESOLVED if work.grade.cause == RESOLVED else reward_levels.FAILING
