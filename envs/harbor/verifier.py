"""Runs a task's own tests on what an agent has left, and reads the reward that they write.

Tests come into the container only now. It is emptied first: of the agent nothing is left but the files of its folder,
so a reward that it has written somewhere is gone. What the tests run of the agent's may still write one; that is the
format's own weakness, and no promise is made about it (docs/other-tasksets.md).
"""

import base64
import gzip
import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.containers.inside.archive import ArchivedPath, complete, pack
from manyturn.containers.sandbox import WORKSPACE, Sandbox, SandboxRefused, Snapshot
from manyturn.envs.contract.env.turn import MOST_REWARD
from manyturn.envs.harbor.folder import Files
from manyturn.envs.harbor.image import LOGS, TESTS
from manyturn.envs.software.workspace.episode_sandbox import EpisodeSandbox

_REWARD = "reward"
_MOST_ARCHIVE = 5 << 20  # bytes: a script has at most 8 MiB, in which it is longer by a third
_LAYING_SECONDS = 60.0
_READ = f"""
import json, os, stat, sys
found = {{}}
for name in ("reward.json", "reward.txt"):
    try:
        handle = os.open("{LOGS}/verifier/" + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        continue
    if stat.S_ISREG(os.fstat(handle).st_mode):
        found[name] = os.read(handle, 65537)[:65537].decode("utf-8", "replace")
os.write(3, json.dumps(found).encode())
"""


class Broken(RuntimeError):
    """A script of the task's own does not work here, whatever an agent has done."""


class Verdict(NamedTuple):
    """Verdict of the tests.

    Attributes:
        rewards: key -> number; None where they wrote none that can be read.
        timed_out: they were stopped.
        output: its last lines.
        seconds: how long they took.
    """

    rewards: Mapping[str, float] | None
    timed_out: bool
    output: str
    seconds: float = 0.0

    @property
    def reward(self) -> float:
        """The number that counts: the key ``reward``, or the only one; 0 where there is none."""
        rewards = self.rewards or {_REWARD: 0.0}
        return rewards[_REWARD] if _REWARD in rewards else next(iter(rewards.values()))


def lay(sandbox: Sandbox | EpisodeSandbox, files: Files, place: str) -> bool:
    """Put files into a folder, as the agent's user. Returns whether that could be done. Raises Broken."""
    archive = gzip.compress(pack(complete(ArchivedPath(path, *file[1:]) for path, file in files.items()))[1], 1)
    if len(archive) > _MOST_ARCHIVE:
        raise Broken(
            f"the files for {place}, packed, have more than {_MOST_ARCHIVE >> 20} MiB, which is too much at once"
        )
    encoded = base64.encodebytes(archive).decode()
    script = (
        f"mkdir -p {place} && base64 -d <<'END-OF-FILES' | tar -xz --overwrite -C {place} -f -\n{encoded}END-OF-FILES\n"
    )
    ran = sandbox.run(f"set -o pipefail; cd /; {script}", seconds=_LAYING_SECONDS, folder="/")
    return ran.status == 0


def verify(
    sandbox: Sandbox, workspace: Snapshot, tests: Files, python: str, environ: Mapping[str, str], seconds: float
) -> Verdict:
    """Run ``tests/test.sh`` in a workspace. Whatever was in the sandbox is lost.

    Args:
        python: of the image.
        seconds: after which the tests are stopped.
    """
    sandbox.restore(workspace)
    sandbox.run(f"mkdir -p {LOGS}/verifier {LOGS}/agent {LOGS}/artifacts", folder="/")
    if not lay(sandbox, {**tests, "test.sh": tests["test.sh"]._replace(executable=True)}, TESTS):
        return Verdict(None, timed_out=False, output="the tests cannot be laid down")
    try:
        ran = sandbox.run("/tests/test.sh", seconds=seconds, folder=WORKSPACE, environ=environ)
    except SandboxRefused as error:
        return Verdict(None, timed_out=False, output=str(error))
    # No process of that run is left, and no file of the agent's is imported.
    read = sandbox.run(f"exec {shlex.quote(python)} -I -S -B -c {shlex.quote(_READ)}", folder="/", report=True)
    rewards = None if ran.timed_out else rewards_of(read.report)
    return Verdict(rewards, ran.timed_out, ran.output.strip()[-500:], ran.seconds)


def rewards_of(report: bytes) -> dict[str, float] | None:
    """Key -> reward, from the two files that tests may write; None unless there is one with finite numbers.

    >>> rewards_of(b'{"reward.txt": "0.5"}'), rewards_of(b'{"reward.txt": "nan"}'), rewards_of(b"{}")
    ({'reward': 0.5}, None, None)
    >>> rewards_of(b'{"reward.txt": "1", "reward.json": "{\\\\"a\\\\": 1, \\\\"reward\\\\": 0}"}')
    {'a': 1.0, 'reward': 0.0}
    """
    try:
        files = json.loads(report)
        if "reward.json" in files:
            plain: Any = json.loads(files["reward.json"])
        else:
            plain = {_REWARD: float(files["reward.txt"])}
        if not isinstance(plain, dict) or any(
            isinstance(value, bool) or not isinstance(value, int | float) for value in plain.values()
        ):
            return None
        rewards = {key: float(value) for key, value in plain.items()}
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    fits = all(math.isfinite(value) and abs(value) <= MOST_REWARD for value in rewards.values())
    return rewards if rewards and fits and (_REWARD in rewards or len(rewards) == 1) else None
