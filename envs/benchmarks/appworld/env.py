r"""AppWorld as an environment.

Setup, on Linux with Python 3.11; none of it touches this project's environment:

    python3.11 -m venv appworld && appworld/bin/pip install appworld
    appworld/bin/appworld install                        # unpacks its apps
    appworld/bin/appworld download data --root FOLDER    # tasks and databases

then ``manyturn.make("manyturn/AppWorld-v0", python="appworld/bin/python", root="FOLDER")``. AppWorld's authors ask
that its data be passed on only encrypted: tasks are named by their ids here, and tests are counted, not quoted. But
episodes that are recorded hold what the agent read; keep such files to yourself. This project's tests ran AppWorld
0.1.3 over tasks made by hand, never over the published ones.

What is guarded. AppWorld checks the agent's code by its syntax and replaces some functions while it runs. That stops
mishaps, not intent: ``__import__("io").FileIO`` reads and writes any file of the user, ``ctypes`` calls the kernel,
and ground truth and evaluator lie within reach. So each episode runs in a process of its own, forked from one that
never runs such code and ended with it. It has a folder of its own, in which there is this task without its ground
truth, and no variables of the user's. ``confine.py`` leaves it no other files but AppWorld's and the system's
libraries, no network, no processes and no signals, 4 GiB of memory, and files of at most 256 MiB. Another process,
confined too, grades the database that it leaves, with AppWorld's own tests.

Whose grade. The official tests judge the databases that the agent's process has left, and this process can write them.
So the official grader can be forged by construction. Code that breaks out of AppWorld's shell can change a database
without the apps' interfaces, and can leave the hash by which the tests see that a record or a table was changed as it
was: collateral damage is not seen then. What a task asks for has still to be there. AppWorld saves a database as the
statements that changed it, and the tests replay these: others than AppWorld records, such as ``ATTACH``, could change
what the state is compared with. They are noticed, as are files of kinds that AppWorld did not write: the episode then
ends as tampered, with outcome 0. The measure ``official`` keeps the verdict of AppWorld's tests for comparison.

An interpreter that ends, hangs or breaks its server is the code's doing, and so is a state that cannot be graded where
the untouched one can: the episode fails. It is no error, which would be tried again.

What is not guarded. Code that breaks out of AppWorld's shell can read AppWorld's package and base databases, which hold
the world that all tasks share. It can use up processor time and the disk below the temporary folder. Faults of the
kernel are not guarded against.

Where the kernel lacks Landlock, AppWorld's own container guards your files, though not your network:

    docker run -p 127.0.0.1:8000:8000 -v FOLDER/data:/run/data -v FOLDER/experiments/outputs:/run/experiments/outputs \
        ghcr.io/stonybrooknlp/appworld:latest environment --port 8000

Give ``url="http://127.0.0.1:8000"``, or a list of such for several environments. There, ground truth and evaluator lie
within reach of the agent's code, what it prints or raises can break the server, and its logs hold the data as plain
text. Do not run ``appworld serve environment`` outside a container: it listens on all of the machine's addresses, and
runs code for whoever asks.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from manyturn.envs.benchmarks.appworld.confinement import CannotConfine, require
from manyturn.envs.benchmarks.appworld.data import LISTS, SETUP, Data
from manyturn.envs.benchmarks.appworld.server_client import AgentBroke, Brief, Grade
from manyturn.envs.benchmarks.appworld.world import ForkedWorld, ServedWorld, World, address_of
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.software.source.text_sanitizer import bounded

INSTRUCTIONS = """\
You do a task for your supervisor by writing Python code, which runs in an interpreter that persists from turn to \
turn. Answer with one block of code; you see what it prints. Through apis.APP.API(...) it reaches apps:

- apis.api_docs.show_app_descriptions(), apis.api_docs.show_api_descriptions(app_name="...") and \
apis.api_docs.show_api_doc(app_name="...", api_name="...") tell which apps and interfaces there are and what they take;
- apis.supervisor tells addresses, payment cards and the passwords of your supervisor's accounts; friends, relatives \
and the like are contacts in the phone app. Most apps want a login first, which gives an access token.

Results come in pages: look at all of them. Change nothing that the task does not ask for. When the task is done, call \
apis.supervisor.complete_task(answer=...), with a short answer if the task asks a question, and without one if not. If \
it cannot be done, call apis.supervisor.complete_task(status="fail"). You cannot ask anyone anything."""
LONGEST_CODE = 50_000  # characters
LONGEST_OUTPUT = 20_000  # characters that are shown: the first half and the last of what is longer
_LOOK = "import importlib.util as u; s = u.find_spec('appworld'); print(s.submodule_search_locations[0] if s else '')"
_BLOCK = re.compile(r"^```[ \t]*(?:python|py)?[ \t]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)


class AppWorld(TextEnv):
    """Tasks of a person's day, done by code against nine apps (Trivedi et al. 2024, arXiv 2407.18901).

    Task:
        An AppWorld task of a supervisor, whose apps hold the data that it needs.
    Observation:
        What the code printed, cut to 20,000 characters.
    Actions:
        One block of Python. It runs in an interpreter that persists from turn to turn.
    Reward:
        1 if all of the task's tests pass, and nothing else. Measures: the share of tests that pass, collateral damage
        (how many fail that doing nothing passes), whether the task was declared done, the ``official`` verdict, and
        whether the state was ``tampered`` with, which earns nothing.
    End:
        The agent declares the task done, or its turns are used up. As in the original the state counts, not the
        declaration. A snapshot is the list of actions, which ``restore`` repeats.
    Splits:
        train, validation (AppWorld's dev), test (test_normal) and test_challenge.
    Expert:
        None.
    Floors:
        Not measured here: this project's tests ran tasks made by hand, never the published ones. ``manyturn evaluate
        random --env manyturn/AppWorld-v0 --env.args '{python = "PYTHON", root = "FOLDER"}'`` measures it.

    The first episode of a process waits 10 to 15 s for imports, which take 240 MB. Each open one takes about 90 MB
    more, and its databases. A turn may take ``seconds`` and a minute: give worker processes that time.

    Args:
        split: train, validation, test or test_challenge.
        python: the interpreter of the environment that AppWorld is installed in.
        root: the folder that ``appworld download data`` has filled.
        url: in place of ``python``, of servers of this machine that run already, one for each environment.
        seconds: that a piece of code may run; AppWorld's own limit is 100.
        confine: refuse to run code without the guards that the module's text names; False runs it with AppWorld's
            alone.
        max_turns: default 50.

    Raises:
        NeedsSetup: AppWorld or its data are missing, or this system cannot confine a process.
    """

    instructions = INSTRUCTIONS
    max_turns = 50
    splits = tuple(LISTS)
    part_names = ()
    harmless = (*TextEnv.harmless, "seconds")  # root, for one, holds AppWorld's tests, which are programs

    def __init__(
        self,
        split: str = "train",
        python: str | None = None,
        root: str | None = None,
        url: str | Sequence[str] | None = None,
        seconds: int = 60,
        confine: bool = True,
        max_turns: int | None = None,
    ):
        super().__init__(split, max_turns)
        if root is None or (python is None) == (not url):
            raise NeedsSetup(f"AppWorld needs its data, and either its own Python or a server's url: {SETUP}")
        if type(seconds) is not int or not 1 <= seconds <= 600:
            raise ValueError(f"seconds is a whole number from 1 to 600, not {seconds!r}")
        data = Data(root)
        self._tasks, self.absent = data.tasks, data.absent
        if split in self.absent:
            raise NeedsSetup(f"the split {split} is absent: {self.absent[split]}")
        self._world: World
        if url:
            urls = (url,) if isinstance(url, str) else tuple(url)
            for one in urls:
                address_of(one)
            self._world, self.side_by_side = ServedWorld(urls, seconds), len(urls)
        else:
            self._world = ForkedWorld(_interpreter(python or ""), data.folder, seconds, _confined(confine))
        self._grade: Grade | None = None
        self._completed = False

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._grade, self._completed = None, False
        return _brief_text(self._world.begin(task.id))

    def respond(self, action: str) -> Turn:
        code = code_of(action)
        if code is None:
            return self._answered("Answer with one block of code, between ```python and ```.", self.unreadable)
        if len(code) > LONGEST_CODE:
            return self._answered(f"The code has {len(code):,} characters: use at most {LONGEST_CODE:,}.", self.invalid)
        if not code.isprintable() and _unsendable(code):
            return self._answered("The code has characters that Python source cannot have.", self.invalid)
        try:
            output = bounded(self._world.execute(code).rstrip("\n"), LONGEST_OUTPUT)
            self._completed = self._world.completed()
        except AgentBroke as error:
            return self._broke(error)
        return self._answered(output, self.go_on)

    def _broke(self, error: AgentBroke) -> Turn:
        """The agent's code did that, so it is no error of the environment, and no other try."""
        self._world.close()
        self._grade = Grade(1, 0, 0)  # no test of it passes
        return self.fail(bounded(f"The interpreter is gone: {error}", LONGEST_OUTPUT))

    def _answered(self, text: str, goes_on: Callable[[str], Turn]) -> Turn:
        if not self._completed and self.turn + 1 < self.max_turns:
            return goes_on(text)
        try:
            self._grade = self._world.grade()
        except AgentBroke as error:
            return self._broke(error)
        self._world.close()
        if self._grade.tampered:
            return self.fail(f"{text}\n[The state was tampered with: {self._grade.tampered}.]")
        verdict = f"{text}\n[{self._grade.passed} of {self._grade.tests} tests pass.]"
        if self._grade.success:
            return self.succeed(verdict)
        if self._completed:
            return self.fail(verdict)
        return goes_on(verdict)  # the last turn, which truncates

    def anchor(self) -> Hashable:
        """The code that was run so far makes the state; output does not show all of it."""
        return (self.task.id, digest(self._actions), self.observation)

    def measures(self) -> Mapping[str, float]:
        if self._grade is None:
            return {}
        share = self._grade.passed / self._grade.tests
        damage, completed = float(self._grade.damage), float(self._completed)
        measures = {"tests_passed": share, "collateral_damage": damage, "declared_done": completed}
        return measures | {"official": float(self._grade.success), "tampered": float(bool(self._grade.tampered))}

    def close(self) -> None:
        """End the episode's process, or give its server back."""
        self._world.close()


def code_of(action: str) -> str | None:
    """The code of a reply: its only block, or all of it if it has none; None if it has several.

    >>> code_of("First I look around.\\n```python\\nprint(1)\\n```")
    'print(1)\\n'
    """
    blocks = _BLOCK.findall(action)
    if not blocks:
        return action
    return blocks[0] if len(blocks) == 1 else None


def _unsendable(code: str) -> bool:
    return "\0" in code or any("\ud800" <= char <= "\udfff" for char in code)


def _brief_text(brief: Brief) -> str:
    person = f"{brief.first_name} {brief.last_name}, email {brief.email}, phone number {brief.phone_number}"
    return bounded(f"Your supervisor: {person}.\nTask: {brief.instruction}", LONGEST_OUTPUT)


def _confined(required: bool) -> bool:
    if required:
        try:
            require()
        except CannotConfine as reason:
            raise NeedsSetup(
                f"the agent's code cannot be confined here, {reason}: run AppWorld's server in a container and give "
                "url=, or accept with confine=False that the code can do what you can"
            ) from None
    return required


@cache
def _interpreter(python: str) -> str:
    """The interpreter's path. Raises NeedsSetup unless a complete AppWorld is installed there."""
    program = shutil.which(os.path.expanduser(python))
    if program is None:
        raise NeedsSetup(f"there is no interpreter {python}: {SETUP}")
    path = os.path.abspath(program)  # not resolved: the link is what makes it that of a virtual environment
    try:
        ran = subprocess.run([path, "-I", "-c", _LOOK], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NeedsSetup(f"{python} is no interpreter that works ({type(error).__name__}): {SETUP}") from None
    package = ran.stdout.strip()
    if not package or not (Path(package) / "apps" / "todoist").is_dir():
        lacks = "its apps are not unpacked" if package else "appworld is not installed"
        raise NeedsSetup(f"{python}: {lacks}: {SETUP}")
    return path
