"""Time limit of all commands of one action together.

A process that plays many episodes answers one request after another, and one that is late is ended: an action that asks
for sixteen long commands would take its neighbours with it. So what an action asks for beyond its time is answered.
"""

from collections.abc import Mapping

from manyturn.containers.sandbox import WORKSPACE, Ran, Sandbox, Snapshot
from manyturn.envs.hosting.handle.deadline import allowed

ACTION_SECONDS = 300.0
"""Of one action, where nobody waits for its answer within a shorter time."""
_SHARE = 0.75  # of that time: the rest is for what is no command
_LEAST = 0.5  # seconds, below which nothing is begun
_LATE = 124


class TimeBudget:
    """Seconds by the clock, which commands and runs of tests use up.

    Attributes:
        seconds: of one action.
        left: of the action at work.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Another action begins."""
        self.seconds = self.left = min(ACTION_SECONDS, _SHARE * allowed())

    def spend(self, seconds: float) -> None:
        """A command took so long."""
        self.left = self.left - seconds if self.left - seconds >= _LEAST else 0.0


class TimedSandbox:
    """A sandbox whose commands use up a budget; what there is no time for counts as stopped at its deadline."""

    def __init__(self, sandbox: Sandbox, budget: TimeBudget):
        self._sandbox, self._budget = sandbox, budget

    def run(
        self,
        script: str,
        *,
        seconds: float = 30.0,
        folder: str = WORKSPACE,
        environ: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> Ran:
        left = self._budget.left
        if not left:
            return Ran(_LATE, "", 0.0, timed_out=True)
        ran = self._sandbox.run(script, seconds=min(seconds, left), folder=folder, environ=environ, report=report)
        self._budget.spend(ran.seconds)
        return ran

    def start(self) -> None:
        self._sandbox.start()

    def read(self, path: str, limit: int = 1_000_000) -> bytes:
        return self._sandbox.read(path, limit)

    def write(self, path: str, content: bytes) -> None:
        self._sandbox.write(path, content)

    def snapshot(self) -> Snapshot:
        return self._sandbox.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._sandbox.restore(snapshot)

    def stop(self) -> None:
        self._sandbox.stop()


def timed(sandbox: Sandbox, budget: TimeBudget | None) -> Sandbox:
    """A sandbox whose commands use up a budget, if there is one."""
    return sandbox if budget is None else TimedSandbox(sandbox, budget)
