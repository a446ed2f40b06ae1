"""The tools of a software agent, carried out in a sandbox as the agent's user."""

import posixpath
import shlex
from collections.abc import Mapping
from types import MappingProxyType

from manyturn.containers.sandbox import WORKSPACE, Ran, Sandbox, SandboxRefused
from manyturn.envs.software.source.text_sanitizer import bounded, numbered
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.episode_sandbox import EpisodeSandbox
from manyturn.envs.tools.tool import ToolError

_ENVIRON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PAGER": "cat", "GIT_PAGER": "cat"}
_AROUND = 3  # lines shown before and after an edit
_VIEWED = 100  # lines shown at once
_MATCHES = 50


class Tools:
    """bash, view, edit and search over one workspace; their docstrings are what a model reads.

    Args:
        sandbox: where everything happens.
        seconds: deadline of a command.
        budget: of one action, for all its commands; whoever calls renews it.
        environ: further variables of its commands.
        called: another name of the workspace, which a link in the image gives it.

    Attributes:
        folder: where commands run; a command that changes it changes it for those after it.
        viewed: the path that was last viewed.
        ran: whether a command has ended with status 0.
        touched: whether the workspace may have changed since this was last set to False.
    """

    def __init__(
        self,
        sandbox: Sandbox | EpisodeSandbox,
        seconds: float = 30.0,
        budget: TimeBudget | None = None,
        environ: Mapping[str, str] = MappingProxyType({}),
        called: str = WORKSPACE,
    ):
        self._sandbox, self._seconds = sandbox, seconds
        self._environ, self._called = {**_ENVIRON, **environ}, called
        self.budget = budget or TimeBudget()
        self.folder = WORKSPACE
        self.viewed = ""
        self.ran = self.touched = False

    def bash(self, command: str) -> str:
        """Run a bash command. The current folder persists between commands; processes do not.

        Args:
            command: the command to run.
        """
        if "\0" in command:
            raise ToolError("a command cannot contain NUL characters")
        self.touched = True
        # The folder in which the command ends is told apart from its output. A command can lie about it, to itself.
        script = f"trap 'pwd >&3' EXIT\n{_printable(command)}\n"
        try:
            ran = self._run(script, report=True)
        except SandboxRefused as error:
            self.folder = WORKSPACE
            raise ToolError(f"{error}; commands run in {WORKSPACE} again") from None
        self._move(ran.report)
        self.ran = self.ran or (ran.status == 0 and not ran.timed_out)
        if ran.timed_out:
            return bounded(f"{ran.output}\n[{self._stopped()}]".lstrip("\n"))
        lines = [ran.output.rstrip("\n")] if ran.output.strip() else []
        lines += [f"[exit status {ran.status}]"] if ran.status else []
        return bounded("\n".join(lines)) or "[no output]"

    def view(self, path: str, first: int = 1, last: int = 0) -> str:
        """Show numbered lines of a file, at most 100 at once.

        Args:
            path: path of the file.
            first: number of the first line.
            last: number of the last line; 0 for as many lines as possible.
        """
        lines = self._read(path).splitlines() or [""]
        if not 1 <= first <= len(lines):
            raise ToolError(f"{path} has {len(lines)} lines: the first line to show is from 1 to {len(lines)}")
        if last and last < first:
            raise ToolError(f"the last line, {last}, is before the first, {first}")
        self.viewed = path
        last = min(last or len(lines), len(lines), first + _VIEWED - 1)
        shown = numbered(lines[first - 1 : last], first)
        return bounded(f"{shown}\n[{len(lines)} lines in all]" if last - first + 1 < len(lines) else shown)

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace text that occurs exactly once in a file, or create a file.

        Args:
            path: path of the file.
            old: the text to replace, with its line breaks and indentation; empty for a new or empty file.
            new: the replacement text.
        """
        if old == new:
            raise ToolError("old and new are the same: nothing changed")
        before = self._read(path) if old else self._nothing(path)
        if old and (count := occurrences(before, old)) != 1:
            state = "does not occur" if count == 0 else f"occurs {count} times"
            raise ToolError(f"{path} is unchanged: the old text {state}; it must occur exactly once")
        head, _, tail = before.partition(old) if old else ("", "", "")
        self._write(path, head + new + tail)
        self.touched = True
        start, end = head.count("\n"), (head + new).count("\n") + 1
        first = max(0, start - _AROUND)
        shown = (head + new + tail).splitlines()[first : end + _AROUND] or [""]
        return bounded(f"{path} is changed:\n{numbered(shown, first + 1)}")

    def search(self, pattern: str, path: str = ".") -> str:
        """Find lines that match an extended regular expression, at most 50 of them.

        Args:
            pattern: a regular expression for grep -E.
            path: path of a file, or of a folder to search recursively.
        """
        if "\0" in pattern + path:
            raise ToolError("a pattern or path cannot contain NUL characters")
        words = ["grep", "-rnIE", "--exclude-dir=.git", "-e", _printable(pattern), "--", _printable(path)]
        # Paths of one match follow each other in an order that depends on the file system, hence sort.
        script = f"{shlex.join(words)} | LC_ALL=C sort -t: -k1,1 -k2,2n; exit ${{PIPESTATUS[0]}}"
        try:
            ran = self._run(script)
        except SandboxRefused as error:
            raise ToolError(str(error)) from None
        if ran.timed_out:
            raise ToolError(f"{self._stopped()}: search a smaller folder")
        if ran.status == 1:
            return "[no matches]"
        if ran.status:
            raise ToolError(bounded(ran.output.strip(), 500))
        lines = ran.output.splitlines()
        more = [f"[{len(lines) - _MATCHES} more matches]"] if len(lines) > _MATCHES else []
        return bounded("\n".join([line.removeprefix("./")[:300] for line in lines[:_MATCHES]] + more))

    def _run(self, script: str, report: bool = False) -> Ran:
        left = self.budget.left
        if not left:
            raise ToolError(f"{self._stopped()}, and that time is used up: call this tool in your next turn")
        seconds = min(self._seconds, left)
        ran = self._sandbox.run(script, seconds=seconds, folder=self.folder, environ=self._environ, report=report)
        self.budget.spend(ran.seconds)
        return ran

    def _stopped(self) -> str:
        if self.budget.left:
            return f"stopped after {self._seconds:g} s"
        return f"stopped: all commands of one turn share {self.budget.seconds:g} s"

    def _move(self, report: bytes) -> None:
        """Follow a command to the folder in which it ended."""
        folder = report.decode(errors="replace").strip()
        if folder.startswith("/") and folder.isprintable() and len(folder) < 1000:
            self.folder = folder

    def _place(self, path: str) -> str:
        """A path below the workspace. Raises ToolError for one outside."""
        full = posixpath.normpath(posixpath.join(self.folder, path))
        if full.startswith(f"{self._called}/"):
            full = WORKSPACE + full.removeprefix(self._called)
        if not path or "\0" in path or not full.startswith(WORKSPACE + "/"):
            raise ToolError(f"{path!r:.200} is not the path of a file below {WORKSPACE}")
        return full

    def _nothing(self, path: str) -> str:
        """The content of a file that is empty or not there yet. Raises ToolError if it holds something."""
        place = shlex.quote(_printable(self._place(path)))
        if self._sandbox.run(f"test -s {place} || test -L {place}").status == 0:
            raise ToolError(f"{path} exists already: give the old text to replace")
        return ""

    def _read(self, path: str) -> str:
        try:
            content = self._sandbox.read(self._place(path))
        except SandboxRefused as error:
            raise ToolError(f"{error}") from None
        return content.decode(errors="surrogateescape")

    def _write(self, path: str, text: str) -> None:
        try:
            self._sandbox.write(self._place(path), text.encode(errors="surrogateescape"))
        except UnicodeEncodeError:
            raise ToolError("the new text has a lone surrogate, which no file can hold") from None
        except SandboxRefused as error:
            raise ToolError(f"{error}") from None


def occurrences(text: str, part: str) -> int:
    """At how many places a part begins in a text, those that overlap included.

    >>> occurrences("aaa", "aa")
    2
    """
    count, place = 0, text.find(part)
    while place >= 0:
        count, place = count + 1, text.find(part, place + 1)
    return count


def _printable(text: str) -> str:
    """Text that can be sent to a process: lone surrogates are replaced."""
    return text.encode(errors="replace").decode()
