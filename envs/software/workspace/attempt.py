"""One attempt at a problem: the tools that the agent calls, and what they have brought about."""

import re
from collections.abc import Callable

from manyturn.containers.sandbox import WORKSPACE, SandboxRefused
from manyturn.envs.software.grading.grader import TAMPERED, TIMEOUT, UNRESOLVED, Grade, carried
from manyturn.envs.software.source.file_tree import Changes, changes_between, tree_of
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.source.text_sanitizer import bounded
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.episode_sandbox import EpisodeSandbox
from manyturn.envs.software.workspace.expert import Call, next_edit
from manyturn.envs.software.workspace.tools import Tools
from manyturn.envs.tools.tool import Schema, ToolError
from manyturn.envs.tools.toolset import Toolset

_TEXTS, _NAMES = 3, 10  # of tests that fail
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")

Judge = Callable[[Changes, bool], Grade]


class Attempt:
    """A workspace, what the agent does in it, and how far that has come.

    Args:
        problem: what is worked on.
        workspace: with the problem's files, or those to continue from.
        judge: grades changes that are carried over; with True the files are wanted again.
        budget: of an action, for commands and tests.

    Attributes:
        tools: bash, view, edit and search.
        key: hash of all files, as of the last ``look``.
        changed: the changes that are graded, as of the last ``look``.
        tested: ``key`` when the tests were last run.
        grade: what the last run of the tests said; None before the first.
        submitted: the agent has handed in ``changed``, which ``grade`` is of unless it is empty.
    """

    def __init__(self, problem: Problem, workspace: EpisodeSandbox, judge: Judge, budget: TimeBudget):
        self.problem, self.workspace, self._judge = problem, workspace, judge
        self.tools = Tools(workspace, budget=budget)
        self.key, self.changed, self.tested = "", dict[str, bytes | None](), ""
        self.grade: Grade | None = None
        self.submitted = False
        self.look()

    def toolset(self, shown: bool) -> Toolset:
        """Tools of the agent; ``test`` only where the tests are ``shown`` to it."""
        tools = self.tools
        return Toolset([tools.bash, tools.view, tools.edit, tools.search, *([self.test] if shown else []), self.submit])

    def test(self) -> str:
        """Run the deciding tests on a clean copy with your changes to source files."""
        try:
            grade = self._judged(back=True)
        except SandboxRefused as error:
            raise ToolError(f"{error}: make room first") from None
        self.tested = self.key
        return bounded(test_report(self.problem, grade))

    def submit(self) -> str:
        """Submit your changes. This ends the task."""
        self.look()
        if self.changed:
            self._judged(back=False)
        self.submitted = True
        return "Your changes are submitted." if self.changed else "Nothing is submitted: no source file was changed."

    def look(self) -> None:
        """See what has become of the files, if a tool may have changed them."""
        if self.key and not self.tools.touched:
            return
        self.tools.touched = False
        try:
            seen = self.workspace.snapshot()
        except SandboxRefused as error:
            # Only the agent can have filled the workspace beyond its limits, so that is its affair, and no change.
            self.key, self.changed = f"refused: {error}", {}
            return
        if seen.key != self.key:
            self.key = seen.key
            self.changed = carried(self.problem, changes_between(self.problem.files, tree_of(seen)))

    def next_call(self, shown: bool) -> Call:
        """Next action of an expert that knows the fix but goes all the way."""
        edit = next_edit(self.problem.fix, self._content)
        if shown and not self.tested:
            return "test", {}
        if edit is None:
            return ("test", {}) if shown and self.tested != self.key else ("submit", {})
        path = f"{WORKSPACE}/{edit.path}" if self.tools.folder != WORKSPACE else edit.path
        if edit.old and self.tools.viewed != path:
            return "view", {"path": path, "first": max(1, edit.line - 10), "last": edit.line + 10}
        return "edit", {"path": path, "old": edit.old, "new": edit.new}

    def _content(self, path: str) -> bytes | None:
        try:
            return self.workspace.read(path)
        except SandboxRefused:
            return None

    def _judged(self, back: bool) -> Grade:
        self.look()
        self.grade = self._judge(self.changed, back)
        return self.grade


def schemas(shown: bool) -> tuple[Schema, ...]:
    """The tools of any work, as a model is told of them."""
    return Toolset(
        [Tools.bash, Tools.view, Tools.edit, Tools.search, *([Attempt.test] if shown else []), Attempt.submit]
    ).schemas


def test_report(problem: Problem, grade: Grade) -> str:
    """A run of the tests, as the agent reads it.

    Of a challenge it learns how that ended and no more: its program has seen the questions, and could tell them here.
    """
    if grade.cause == TIMEOUT:
        return "The tests took too long and were stopped."
    if grade.cause == TAMPERED:
        return "The run was tampered with."
    if grade.cause == UNRESOLVED and grade.detail:
        return grade.detail if grade.reached is None else "The tests pass on their own inputs, but not on others."
    failed = [test for test in problem.fail_to_pass if test not in grade.fixed] + list(grade.broken)
    passed = len(problem.fail_to_pass) + len(problem.pass_to_pass) - len(failed)
    lines = [f"{len(failed)} failed, {passed} passed", *(f"FAILED {test}" for test in failed[:_NAMES])]
    if len(failed) > _NAMES:
        lines.append(f"[{len(failed) - _NAMES} more]")
    texts = sorted(grade.texts.items(), key=lambda item: item[0] not in failed)
    for name, text in texts[:_TEXTS]:
        lines += ["", f"{name}:", _ADDRESS.sub("0x...", text)]
    return "\n".join(lines)
