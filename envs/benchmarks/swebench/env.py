"""SWE-bench and the sets of its form: do what an issue asks for, in the repository's own container image."""

import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.engine.preflight import examined
from manyturn.containers.sandbox import WORKSPACE, Sandbox, SandboxLimits, overrun_behind
from manyturn.envs.benchmarks.swebench.differential_check import UNGRADED, judged
from manyturn.envs.benchmarks.swebench.image_preparation import Prepared, prepare
from manyturn.envs.benchmarks.swebench.patch_evaluation import LOG_BYTES
from manyturn.envs.benchmarks.swebench.patch_extraction import NoPatch, take_patch, unpack
from manyturn.envs.benchmarks.swebench.predictions import PATCH_MARK
from manyturn.envs.benchmarks.swebench.rows import REBENCH, SWEBENCH, SWEGYM, SWESMITH, DataError, Row, load
from manyturn.envs.contract.env.text_env import TextEnv, Unsupported
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import SPLITS, Task, split_of
from manyturn.envs.software.source.text_sanitizer import harmless
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.tools import Tools
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import tool_of
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset

INSTRUCTIONS = f"""\
A repository is in {WORKSPACE}, which /testbed links to, in a sandbox without a network. The first message is an issue \
about it. Change the repository's source files to resolve the issue, and submit. Hidden tests decide. Changes to tests \
do not count, and neither does work that is not submitted."""
COMMAND_SECONDS = 60.0
LIMITS = SandboxLimits(memory_mb=4096, cpus=2.0, processes=512, workspace_mb=1536, scratch_mb=512, files=200_000)
"""Workspace and scratch folder lie in memory, and count towards ``memory_mb``."""
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_TEST_SET = frozenset({SWEBENCH})


class SWEBench(TextEnv):
    """Resolve an issue of a repository, in the repository's own container image.

    Task:
        A row of SWE-bench, SWE-Gym, SWE-smith, R2E-Gym or SWE-rebench: the repository at a commit, and an issue.
    Observation:
        What the last tool printed; the first text is the issue. The repository's history is removed.
    Actions:
        The tools ``bash``, ``view``, ``edit``, ``search`` and ``submit``, one JSON call each turn.
    Reward:
        1 if all of the row's tests are as they should be, else 0. It is for training and for looking at. Headline
        numbers come from SWE-bench's own harness, for which ``predictions`` writes the file. The official grader can be
        forged by the code that it grades. So where pytest runs the tests and the row has a patch, what it calls right
        must also meet a challenge (``challenged.py``). Measures: ``official`` is the official verdict, ``challenged``
        whether there was a challenge, ``tampered`` whether the log was forged.
    End:
        ``submit`` ends the work, and the tests run in another container. That may take half an hour: give worker
        processes that time. A snapshot is the list of actions, which ``restore`` repeats.
    Splits:
        Rows of SWE-bench are the split test. Those of sets made for training are divided 80/10/10 by their content.
    Expert:
        Puts in the row's own patch and submits; a row without a patch has none.
    Floors:
        Not measured here: this project's tests never ran the published images. Work that is not handed in earns 0.
        ``manyturn evaluate expert --env manyturn/SWEBench-v0 --env.args '{rows = "FILE"}'`` checks rows and images.

    Args:
        split: default: the first that there is.
        rows: a file of rows; see ``rows.py``.
        image: from the name of a row's image to the one that is used; see ``image_of``.
        hints: show what the row gives as hints too; SWE-bench's rules forbid it.
        engine: what sandboxes are made with: arguments of ``container_engine.ContainerEngine`` besides ``image`` and
            ``python``, such as ``{"limits": {"workspace_mb": 4000, "memory_mb": 8000}}``.
        max_turns: default 75.

    Raises:
        NeedsSetup: there are no rows, or they are not what they should be.
    """

    max_turns = 75
    part_names = ()
    harmless = (*TextEnv.harmless, "hints")
    _toolset: Toolset  # of the episode

    def __init__(
        self,
        split: str | None = None,
        rows: str | None = None,
        image: str = "{image}",
        hints: bool = False,
        engine: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ):
        if rows is None:
            raise NeedsSetup(
                'SWE-bench\'s rows do not come with this package: give rows="FILE" (.json, .jsonl, .parquet)'
            )
        self._engine = _engine_of(engine or {})
        self._image, self._hints = image, hints
        self._rows = {row.instance: row for row in load(rows)}
        tasks = [_task(row) for row in self._rows.values()]
        self._tasks = {name: tuple(task for task in tasks if task.split == name) for name in SPLITS}
        self.splits = tuple(name for name in SPLITS if self._tasks[name])  # those with tasks
        super().__init__(split or self.splits[0], max_turns)
        self._sandbox: Sandbox | None = None
        self._prepared: dict[str, Prepared] = {}
        self._submitted, self._budget = False, TimeBudget()
        self._measured = dict[str, float]()
        functions = (Tools.bash, Tools.view, Tools.edit, Tools.search, SWEBench.submit)
        self.tools = tuple(tool_of(function).schema for function in functions)
        self.instructions = with_tools(INSTRUCTIONS, self.tools)

    @property
    def side_by_side(self) -> int:  # type: ignore[override]  # it depends on the engine
        """As many as half of the engine's memory holds; an episode that is graded has one container more."""
        return max(1, (examined().memory >> 21) // self._engine.limits.memory_mb)

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks.get(split, ())

    @property
    def row(self) -> Row:
        """Of the task that is being worked on."""
        return self._rows[self.task.id]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        row = self._rows[task.id]
        self.close()
        if task.id not in self._prepared:
            self._prepared[task.id] = prepare(row, image_of(row, self._image))
        prepared = self._prepared[task.id]
        self._sandbox = self._started(prepared.agent, prepared.python)
        unpack(self._sandbox)
        tools = Tools(self._sandbox, seconds=COMMAND_SECONDS, budget=self._budget)
        self._toolset = Toolset([tools.bash, tools.view, tools.edit, tools.search, self.submit], most_calls=1)
        self._submitted = False
        self._measured = dict(UNGRADED)
        hints = f"\n\nHints:\n{row.hints}" if self._hints and row.hints else ""
        return harmless((row.statement + hints).replace("\r\n", "\n"))

    def respond(self, action: str) -> Turn:
        self._budget.renew()
        try:
            return self._respond(action)
        except Exception as error:
            if (overrun := overrun_behind(error)) is None:
                raise
            # What the agent has run, or handed in, did that: no error of the environment, and no other try.
            self.close()
            return self.fail(f"The sandbox is lost: {overrun}.")

    def _respond(self, action: str) -> Turn:
        answered = self._toolset.answer(action)
        if self._submitted:
            return self._end()
        return answered.turn(self)

    def submit(self) -> str:
        """Submit your changes. This ends the task."""
        self._submitted = True
        return ""

    def expert(self) -> str:
        """Puts in the row's own patch and submits."""
        patch = self.row.gold or self.row.fault
        if not patch:
            raise Unsupported(f"{self.row.instance} has no expert: its row has no patch")
        apply = "git apply" if self.row.gold else "git apply -R"
        mend = f"{apply} --whitespace=nowarn - <<'END-OF-THE-PATCH'\n{patch}\nEND-OF-THE-PATCH"
        action = call_text("bash", command=mend)
        return call_text("submit") if action in self._actions else action

    def close(self) -> None:
        """Remove the episode's container."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.stop()

    def _started(self, image: str, python: str, **limits: int) -> Sandbox:
        changed = self._engine.limits.model_copy(update=limits)
        sandbox = DockerSandbox(self._engine.model_copy(update={"image": image, "python": python, "limits": changed}))
        sandbox.start()
        return sandbox

    def _end(self) -> Turn:
        """Take the patch out, end the agent's container, and grade in another."""
        assert self._sandbox is not None
        try:
            patch = take_patch(self._sandbox, self.row)
        except NoPatch as reason:
            return self.fail(f"Submitted, but {reason}.{PATCH_MARK}")
        finally:
            self.close()
        if not patch:
            return self.fail(f"Submitted, but no source file was changed.{PATCH_MARK}")
        prepared = self._prepared[self.task.id]
        grader = self._started(prepared.grader, prepared.python, output_bytes=LOG_BYTES)
        try:
            judgement = judged(grader, self.row, patch, seed_of("swebench challenge", self._seed))
        finally:
            grader.stop()
        self._measured = dict(judgement.measures)
        text = f"Submitted. {judgement.verdict}{PATCH_MARK}{patch}"
        return self.succeed(text) if judgement.right else self.fail(text)

    def measures(self) -> Mapping[str, float]:
        return dict(self._measured)


def _task(row: Row) -> Task:
    params = {"instance": row.instance, "statement": row.statement, "commit": row.commit, "fault": row.fault}
    task = Task(row.instance, "test", params, tags=(row.family, row.repository))
    if row.family in _TEST_SET:
        return task
    return Task(row.instance, split_of(task.content), params, tags=task.tags)


def _engine_of(given: Mapping[str, Any]) -> ContainerEngine:
    """Raises ValueError for arguments that ContainerEngine does not take."""
    named = sorted({"image", "python"} & given.keys())
    if named:
        raise ValueError(f"engine takes no {named[0]!r} here, each row has its own: give image=RULE to the environment")
    limits = {**LIMITS.model_dump(), **given.get("limits", {})}
    try:
        return ContainerEngine.model_validate({**given, "limits": limits})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"engine: {where}: {first['msg'].removeprefix('Value error, ')}") from None


def swebench_image(instance: str, namespace: str | None = "swebench", tag: str = "latest", arch: str = "x86_64") -> str:
    """SWE-bench's rule; an image that was built on this machine has no namespace.

    >>> swebench_image("astropy__astropy-12907")
    'swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest'
    >>> swebench_image("Django__Django-1", namespace=None, tag="v1", arch="arm64")
    'sweb.eval.arm64.django__django-1:v1'
    """
    name = f"sweb.eval.{arch}.{instance}:{tag}"
    return (name if namespace is None else f"{namespace}/{name}".replace("__", "_1776_")).lower()


def swegym_image(instance: str) -> str:
    """SWE-Gym's rule.

    >>> swegym_image("getmoto__moto-7584")
    'xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7584:latest'
    """
    return f"xingyaoww/sweb.eval.x86_64.{instance.replace('__', '_s_')}:latest".lower()


def image_of(row: Row, rule: str = "{image}") -> str:
    """The image of an instance. Raises DataError if that is no image's name.

    Args:
        rule: how to get from the set's own name for it to the one that is used, such as
            ``registry.local:5000/{image}`` for a mirror. ``{instance}`` is the instance's id, in lower case.
    """
    rules = {SWEBENCH: _swebench, SWEGYM: swegym_image, REBENCH: _rebench}
    image = row.image or rules[row.family](row.instance)
    if row.family == SWESMITH and "/" not in image:
        image = f"jyangballin/{image}".replace("__", "_1776_").lower()
    image = image.removeprefix("docker.io/")
    if ":" not in image.rpartition("/")[2] and "@" not in image:
        image += ":latest"
    name = rule.replace("{image}", image).replace("{instance}", row.instance.lower())
    if len(name) > 400 or not _IMAGE.fullmatch(name):
        raise DataError(f"{row.instance}: {name!r:.100} is no name of an image: fix the row, or give image=NAME")
    return name


def _swebench(instance: str) -> str:
    return swebench_image(instance, arch="arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64")


def _rebench(instance: str) -> str:
    return swebench_image(instance, namespace="swerebench")
