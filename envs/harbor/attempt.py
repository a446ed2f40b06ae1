"""One attempt at a task: the sandbox, the tools of the agent, and what becomes of what is handed in."""

from collections.abc import Mapping

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.sandbox import WORKSPACE, SandboxRefused, Snapshot
from manyturn.envs.harbor.expert import solving
from manyturn.envs.harbor.image import Ground
from manyturn.envs.harbor.tasks import Folder, Step
from manyturn.envs.harbor.verifier import Broken, Verdict, lay, verify
from manyturn.envs.software.testing.time_budget import TimeBudget
from manyturn.envs.software.workspace.episode_sandbox import EpisodeSandbox, Files
from manyturn.envs.software.workspace.tools import Tools
from manyturn.envs.tools.calls import BadCall, read_calls
from manyturn.envs.tools.tool import ToolError
from manyturn.envs.tools.toolset import Answered, Toolset

COMMAND_SECONDS = 60.0
_SETUP = "setup.sh"


class Attempt:
    """A workspace, and the step that is worked on in it.

    Args:
        base: image and names.
        pristine: the working folder before anybody has worked in it.
        folder: the task.
        engine: what sandboxes are made with.
        budget: of an action; whoever calls renews it.

    Attributes:
        number: of the step, from 0.
        tools: bash, view, edit and search.
        key: hash of all files, as of the last action.
        handed_in: the files that ``submit`` has handed in; None before.
        solved: whether the step's own solution has been put in.
    """

    def __init__(self, base: Ground, pristine: Snapshot, folder: Folder, engine: ContainerEngine, budget: TimeBudget):
        self._base, self._pristine, self._folder, self._budget = base, pristine, folder, budget
        self._engine = engine.model_copy(update={"image": base.image, "python": base.python})
        self.number, self.solved, self.key = 0, False, ""
        self.handed_in: Files | None = None
        self._sit_down(Files(pristine))

    @property
    def step(self) -> Step:
        return self._folder.steps[self.number]

    @property
    def called(self) -> str:
        """The agent's folder, by the name that the task gives it."""
        return self._base.workdir

    def answer(self, action: str) -> Answered:
        """Answer of the tools to an action."""
        try:
            if any(request.name == "submit" for request in read_calls(action)[:-1]):
                raise BadCall("submit ends the task: no call can follow it")
        except BadCall as error:
            return Answered(f"Error: {error}", (), valid=False, readable=False)
        tools = self.tools
        answered = Toolset([tools.bash, tools.view, tools.edit, tools.search, self.submit]).answer(action)
        self.look()
        return answered

    def submit(self) -> str:
        """Submit the files in your folder. Hidden tests decide."""
        try:
            self.handed_in = self.workspace.files()
        except SandboxRefused as error:
            raise ToolError(f"{error}: make room first") from None
        return "Your work is submitted."

    def look(self) -> None:
        """See what has become of the files, if a tool may have changed them."""
        if self.tools.touched or not self.key:
            self.tools.touched = False
            try:
                self.key = self.workspace.snapshot().key
            except SandboxRefused as error:  # the agent has filled the workspace beyond its limits
                self.key = f"refused: {error}"

    def judged(self) -> Verdict:
        """Verdict of the step's tests on the submission. Raises Broken if untouched files get no reward either."""
        assert self.handed_in is not None
        with self.workspace.lent(back=False) as sandbox:
            sandbox.spent = "what ran there saw hidden tests, and could leave word in the kernel's counters"
            environ = {**self._folder.laid.environ, **self.step.environ}

            def verdict(workspace: Snapshot) -> Verdict:
                if not self._budget.left:
                    return Verdict(None, timed_out=True, output="")
                seconds = min(self.step.seconds, self._budget.left)
                result = verify(sandbox, workspace, self.step.tests, self._base.python, environ, seconds)
                self._budget.spend(result.seconds)
                return result

            result = verdict(self.handed_in.workspace)
            if result.rewards is None and not result.timed_out and (untouched := self._untouched(sandbox)) is not None:
                again = verdict(untouched)
                if again.rewards is None and not again.timed_out:
                    raise Broken(f"tests/test.sh leaves no reward here, of untouched files either: {again.output}")
        return result

    def begin_step(self, number: int) -> bool:
        """Go on with a step in the files that were handed in. Returns whether it could be set up.

        Raises Broken where that fails in files that no agent has touched, too.
        """
        files, self.handed_in = self.handed_in, None
        if files is not None:
            self.close()
            self._sit_down(files)
        self.number, self.solved, self.key = number, False, ""
        if not self._set_up(self.workspace, self.step):
            with self.workspace.lent(back=False) as sandbox:
                untouched = self._untouched(sandbox)
                if number and (untouched is None or self._set_up(sandbox, self.step)):
                    return False
            raise Broken(f"steps/{self.step.name}/workdir cannot be laid down, or its {_SETUP} fails here")
        self.look()
        return True

    def take_up(self, number: int, files: Files, state: Mapping[str, object]) -> None:
        """Continue from a snapshot: the step's number, its files, and the rest of its state."""
        self.close()
        self._sit_down(files)
        self.number, self.solved, self.key = number, bool(state["solved"]), ""
        self.tools.folder, self.tools.viewed = str(state["folder"]), str(state["viewed"])
        self.look()

    def close(self) -> None:
        """Give the sandbox back."""
        self.workspace.close()

    def _sit_down(self, files: Files) -> None:
        self.workspace = EpisodeSandbox(self._engine, files)
        environ = self._folder.laid.environ
        self.tools = Tools(self.workspace, COMMAND_SECONDS, self._budget, environ, called=self._base.workdir)

    def _untouched(self, sandbox: DockerSandbox) -> Snapshot | None:
        """The files before the step, in a sandbox: as the solutions of earlier steps leave them.

        None where one of them has no solution: then nobody can tell whose fault it is, and it counts as the agent's.
        """
        sandbox.restore(self._pristine)
        for step in self._folder.steps[: self.number]:
            if not step.solution or not self._set_up(sandbox, step):
                return None
            self._run(sandbox, solving(step.solution, self._folder.solving))
        return sandbox.snapshot()

    def _set_up(self, sandbox: EpisodeSandbox | DockerSandbox, step: Step) -> bool:
        """Lay down what belongs to a step, and run its script."""
        if not step.staged:
            return True
        return lay(sandbox, step.staged, WORKSPACE) and (
            _SETUP not in step.staged or self._run(sandbox, f"bash {_SETUP}")
        )

    def _run(self, sandbox: EpisodeSandbox | DockerSandbox, script: str) -> bool:
        """Run a script of the task's own in the working folder. Returns whether it ended well."""
        if not self._budget.left:
            return False
        ran = sandbox.run(script, seconds=self._budget.left, environ=self._folder.laid.environ)
        self._budget.spend(ran.seconds)
        return ran.status == 0 and not ran.timed_out
