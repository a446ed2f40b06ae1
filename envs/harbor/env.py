"""A task folder of Harbor, read as the loader of harbor 0.24.0 reads it, in our containers: ``harbor:DIR``.

Source: the package harbor 0.25.0, ``harbor.models.task``, ``harbor.verifier`` and ``harbor.trial.multi_step``.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.engine.images import inspected
from manyturn.containers.inside.archive import ArchivedPath, complete, pack
from manyturn.containers.sandbox import EngineUnavailable, SandboxLimits, Snapshot, overrun_behind
from manyturn.envs.contract.env.text_env import TextEnv, Unsupported
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.harbor.attempt import Attempt
from manyturn.envs.harbor.expert import solving
from manyturn.envs.harbor.folder import task_folders
from manyturn.envs.harbor.image import Ground, ground, laid_over
from manyturn.envs.harbor.tasks import Folder, Step, read_task
from manyturn.envs.harbor.verifier import Verdict
from manyturn.envs.hosting.handle.container_engine_check import usable
from manyturn.envs.software.source.file_tree import difference, patched
from manyturn.envs.software.source.lru_cache import RecencyCache
from manyturn.envs.software.source.text_sanitizer import bounded, harmless
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.episode_sandbox import Files
from manyturn.envs.software.workspace.tools import Tools
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import tool_of
from manyturn.envs.tools.tool_prompt import with_tools

INSTRUCTIONS = """\
You work on a task in a sandbox without a network, with the tools below. The first message gives the task and its \
folder. Hidden tests decide. They check that folder when you submit; work that is not submitted does not count."""
LIMITS = SandboxLimits(memory_mb=1024, processes=256, workspace_mb=256, scratch_mb=128, files=50_000)
"""Workspace and scratch folders lie in memory, and count towards ``memory_mb``."""
_MOST_CHARACTERS = 50_000  # of an instruction
_FEW = ("ls -a", "pwd", "true")
_folders, _packed = RecencyCache[Folder](16), RecencyCache[tuple[Ground, Snapshot]](16)


class HarborEnv(TextEnv):
    """Do what a task of Harbor asks for; its own tests decide.

    Each turn the agent writes a JSON call of ``bash``, ``view``, ``edit``, ``search`` or ``submit``. ``submit`` runs
    the tests of the task, or of the step. The return of an episode is Harbor's reward of a trial. In a task with steps
    whose strategy is ``mean``, a step that is not the last pays its share when it is handed in, as the part
    ``step:NAME``. A step below its ``min_reward`` ends the episode. The anchor is task, step, files, folder and
    observation.

    Args:
        folder: a task's, or one that holds such folders, or one that holds such folders by split.
        split: default: the first that there is.
        image: an image that the engine has, in place of the tasks' own; ``{task}`` stands for a task's folder.
        offline: play tasks that ask for a network without one.
        engine: what sandboxes are made with: arguments of ``ContainerEngine`` besides ``image`` and ``python``.
        max_turns: default 40.
        success_from: the reward from which an episode is a success.

    Raises:
        NeedsSetup: there is no container engine, a task cannot be played here, or it has no image.
    """

    max_turns = 40
    waits_outside = True
    harmless = (*TextEnv.harmless, "offline", "success_from")
    tools = tuple(tool_of(one).schema for one in (Tools.bash, Tools.view, Tools.edit, Tools.search, Attempt.submit))
    instructions = with_tools(INSTRUCTIONS, tools)

    def __init__(
        self,
        folder: str,
        split: str | None = None,
        image: str | None = None,
        offline: bool = False,
        engine: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        success_from: float = 1.0,
    ):
        if named := sorted({"image", "python"} & (engine or {}).keys()):
            raise ValueError(f"engine takes no {named[0]!r} here: a task has an image of its own, or give image=NAME")
        self._read = partial(read_task, offline=offline, image=image)
        self._places = dict[str, Path]()
        images, parts = set[str](), set[str]()
        self._tasks = dict[str, Sequence[Task]]()
        for name, folder_there in task_folders(Path(folder)).items():
            self._places |= {f"{name}/{one}": place for one, place in folder_there.items()}
            self._tasks[name] = [self._task(f"{name}/{one}", name, images, parts) for one in folder_there]
        self.splits = tuple(self._tasks)
        self._engine = _engine_of(engine, sorted(images))
        super().__init__(split or self.splits[0], max_turns)
        self.part_names = tuple(sorted(parts))
        self._success_from = success_from
        self._attempt: Attempt | None = None  # None between episodes
        self._budget = TimeBudget()
        self._verdicts: list[Verdict] = []  # of the steps that were handed in
        self._paid, self._passed, self._anchor = 0.0, 0, tuple[Any, ...]()

    def _task(self, name: str, split: str, images: set[str], parts: set[str]) -> Task:
        """A task; its image and the names of its reward parts are added to what is known of the others."""
        folder = self._read(self._places[name])
        images.add(folder.laid.image)
        parts |= {part_of(step) for step in folder.steps[:-1] if folder.is_mean}
        return Task(name, split, {"files": folder.content, "image": folder.laid.image})

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks.get(split, ())

    @property
    def folder(self) -> Folder:
        """Of the task that is being worked on. Raises NeedsSetup if its files have changed since the first look."""
        digests, place = self.task.params["files"], self._places[self.task.id]
        ground_truth = _folders.made(digest(str(place), digests, self.task.params["image"]), lambda: self._read(place))
        if ground_truth.content != digests:
            raise NeedsSetup(f"{place} has changed since this environment was made: make it again")
        return ground_truth

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._verdicts, self._paid, self._passed = [], 0.0, 0
        self._budget.renew()
        self._attempt = attempt = self._begun()
        attempt.begin_step(0)
        self._note(attempt)
        return bounded(f"You work in {attempt.called}.\n\n{attempt.step.instruction}", _MOST_CHARACTERS)

    def respond(self, action: str) -> Turn:
        assert self._attempt is not None  # set by begin
        self._budget.renew()
        try:
            return self._respond(self._attempt, action)
        except BaseException as error:
            self.close()
            if (overrun := overrun_behind(error)) is None:
                raise
            # What the agent has run did that, so it is no error of the environment.
            return self.fail(f"The sandbox is lost, and the work with it: {overrun}.")

    def _respond(self, attempt: Attempt, action: str) -> Turn:
        if self._has_solution() and action == self._solution():
            attempt.solved = True
        answered = attempt.answer(action)
        answered = answered._replace(text=harmless(answered.text))
        if attempt.handed_in is None:
            self._note(attempt)
            if self.turn + 1 >= self.max_turns:
                self.close()
            return answered.turn(self)
        turn = self._handed_in(attempt, answered.text)
        if self.turn + 1 >= self.max_turns:
            self.close()
        return replace(turn, understood=answered.valid)

    def _handed_in(self, attempt: Attempt, text: str) -> Turn:
        """The turn in which a step was handed in: the next one begins, or the episode ends."""
        verdict, step, steps = attempt.judged(), attempt.step, self.folder.steps
        self._verdicts.append(verdict)
        rewards = verdict.rewards or {}
        if attempt.number + 1 == len(steps) or any(
            rewards.get(key, -np.inf) < least for key, least in step.least.items()
        ):
            return self._ended(text)
        self._passed += 1
        if not attempt.begin_step(attempt.number + 1):
            self._verdicts.append(Verdict(None, timed_out=False, output=""))
            return self._ended(f"{text} The next step could not be set up on the files that you left.")
        self._note(attempt)
        share = {part_of(step): verdict.reward / len(steps)} if self.folder.is_mean else {}
        self._paid += sum(share.values())
        return self.go_on(bounded(f"{text}\n\n{attempt.step.instruction}", _MOST_CHARACTERS), **share)

    def _ended(self, text: str) -> Turn:
        self.close()
        rewards = [verdict.reward for verdict in self._verdicts]
        total = sum(rewards) / len(rewards) if self.folder.is_mean else rewards[-1]
        success = len(rewards) == len(self.folder.steps) and total >= self._success_from
        self._passed += success
        return (self.succeed if success else self.fail)(text, total - self._paid)

    def anchor(self) -> tuple[Any, ...]:
        return (self.task.id, len(self._verdicts), *self._anchor, self.observation)

    def progress(self) -> float | None:
        """The share of steps that were passed; not known where a task has no steps."""
        return self._passed / len(self.folder.steps) if len(self.folder.steps) > 1 else None

    def admissible(self) -> list[str]:
        """Some calls that a random policy may try."""
        return [*(call_text("bash", command=command) for command in _FEW), call_text("submit")]

    def expert(self) -> str:
        """Puts in the task's own solution, and submits."""
        assert self._attempt is not None
        if self._attempt.solved:
            return call_text("submit")
        if not self._has_solution():
            raise Unsupported(f"{self.task.id} has no expert: its folder has no solution/solve.sh")
        return self._solution()

    def measures(self) -> Mapping[str, float]:
        """The rewards of the last tests by their keys, where they gave several, and how many steps were played."""
        last = self._verdicts[-1].rewards if self._verdicts else None
        measures = {f"reward:{key}": value for key, value in (last or {}).items()} if len(last or {}) > 1 else {}
        return {**measures, "steps": float(len(self._verdicts))} if len(self.folder.steps) > 1 else measures

    def save(self) -> bytes:
        """The files as far as they differ from the task's; processes are not part of a snapshot."""
        state: dict[str, Any] = {"paid": self._paid, "passed": self._passed, "anchor": self._anchor}
        state["verdicts"] = [verdict.rewards for verdict in self._verdicts]
        if (attempt := self._attempt) is not None:
            files, tools = attempt.workspace.files(), attempt.tools
            state["work"] = {
                **{"number": attempt.number, "folder": tools.folder, "viewed": tools.viewed, "solved": attempt.solved},
                **{"scratch": base64.b64encode(files.scratch).decode()},
                "files": difference(self._ground()[1], files.workspace),
            }
        return zlib.compress(json.dumps(state).encode(), 1)

    def load(self, data: bytes) -> None:
        state = json.loads(zlib.decompress(data))
        self._paid, self._passed = state["paid"], state["passed"]
        self._verdicts = [Verdict(rewards, timed_out=False, output="") for rewards in state["verdicts"]]
        if "work" in state:
            assert self._attempt is not None  # set by begin
            work = state["work"]
            files = Files(patched(self._ground()[1], work["files"]), base64.b64decode(work["scratch"]))
            self._attempt.take_up(work["number"], files, work)
        else:  # the episode has ended
            self.close()
        self._anchor = tuple(state["anchor"])

    def close(self) -> None:
        """Give the sandbox back."""
        if self._attempt is not None:
            self._attempt.close()
            self._attempt = None

    def _begun(self) -> Attempt:
        self.close()
        base, pristine = self._ground()
        return Attempt(base, pristine, self.folder, self._engine, self._budget)

    def _note(self, attempt: Attempt) -> None:
        self._anchor = (attempt.key, attempt.tools.folder)

    def _ground(self) -> tuple[Ground, Snapshot]:
        """Image and files of the task, found once for all of its episodes."""
        place = self.folder.laid

        def make() -> tuple[Ground, Snapshot]:
            base = ground(place.image, place.workdir)
            return base, _pristine(base, place.files)

        return _packed.made(digest(place.image, place.workdir, self.folder.content), make)

    def _has_solution(self) -> bool:
        return self._attempt is not None and bool(self._attempt.step.solution)

    def _solution(self) -> str:
        assert self._attempt is not None
        return call_text("bash", command=solving(self._attempt.step.solution, self.folder.solving))


def part_of(step: Step) -> str:
    """The name of the reward that a step pays before the last one is handed in."""
    return f"step:{step.name}"


def _pristine(ground: Ground, files: Mapping[str, ArchivedPath]) -> Snapshot:
    """The working folder with what the Dockerfile lays into it. Raises NeedsSetup for a file elsewhere."""
    start = f"{ground.workdir}/"
    if odd := next((path for path in files if not path.startswith(start)), None):
        raise NeedsSetup(
            f"environment/Dockerfile lays {odd} out of {ground.workdir}, where a sandbox cannot write: build the image "
            "yourself, and name it by --env.args.image"
        )
    cut = {path.removeprefix(start): file for path, file in files.items()}
    over = {path: file._replace(path=path) for path, file in cut.items()}
    return Snapshot(*pack(complete(laid_over(ground.files, over))))


def _engine_of(engine: Mapping[str, Any] | None, images: Sequence[str]) -> ContainerEngine:
    """The engine, which has these images. Raises NeedsSetup."""
    try:
        missing = [image for image in images if inspected(image) is None]
    except EngineUnavailable as error:
        raise NeedsSetup(f"tasks of Harbor need containers: {error}") from error
    if missing:
        raise NeedsSetup(
            f"the engine has no image {missing[0]}, and none is fetched: pull or build it, or name another "
            "by --env.args.image"
        )
    limits = {**LIMITS.model_dump(), **(engine or {}).get("limits", {})}
    return usable({**(engine or {}), "limits": limits, "image": images[0]}, "tasks of Harbor")
