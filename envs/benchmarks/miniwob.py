"""MiniWoB++ in a browser, its pages read and acted on by number."""

import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import LazyTasks, Task
from manyturn.envs.web.browser import BrowserError
from manyturn.envs.web.chromium import require_browser
from manyturn.envs.web.tab import Tab
from manyturn.envs.web.text_browser import INSTRUCTIONS, PageReader

_NO_LIMIT_MS = 10**9
_RESULT = "() => [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL]"

# A test solves each of them by script, with the environment's own commands. Left out are those that need a mouse's
# path, colours or shapes, marked text, exact spaces or quick hands, and those whose controls may cover one another.
PLAYABLE = (
    "choose-list",
    "click-button",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-dialog",
    "click-dialog-2",
    "click-option",
    "click-tab",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "find-word",
    "focus-text-2",
    "form-sequence-2",
    "login-user",
    "login-user-popup",
    "navigate-tree",
    "read-table",
    "simple-algebra",
    "simple-arithmetic",
    "unicode-test",
    "use-autocomplete",
)
# Split -> first seed, and number of seeds for each task.
SEEDS = {"train": (0, 1_000_000), "validation": (1_000_000, 10_000), "test": (2_000_000, 10_000)}


class Variants(LazyTasks):
    """The tasks of a split: the first variant of each name, then the second of each, and so on.

    Args:
        split: train, validation or test.
        names: of MiniWoB++'s tasks.
    """

    def __init__(self, split: str, names: Sequence[str]):
        self._split, self._names = split, tuple(names)
        self._first, self._count = SEEDS[split]

    def __len__(self) -> int:
        return self._count * len(self._names)

    def task_at(self, place: int) -> Task:
        number, name = divmod(place, len(self._names))
        return self._make(self._names[name], number)

    def find(self, task_id: str) -> Task | None:
        """The task with this id, such as ``test/click-button/7``, or None."""
        split, _, rest = task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if split != self._split or name not in self._names or not number.isdecimal() or str(int(number)) != number:
            return None
        return self._make(name, int(number)) if int(number) < self._count else None

    def _make(self, name: str, number: int) -> Task:
        params = {"task": name, "seed": self._first + number}
        return Task(f"{self._split}/{name}/{number}", self._split, params, tags=(name,))


class MiniWoB(TextEnv):
    """Do what a small web page asks for.

    Task:
        A page of MiniWoB++, in a variant made by a seed: 24 tasks that a script has solved by number.
    Observation:
        One screen of the page, as an accessibility snapshot: what can be acted on has a number.
    Actions:
        ``click[N]``, ``type[N] WORDS``, ``select[N] TEXT``, ``scroll[down]``, ``scroll[up]`` and ``back``. What can be
        typed is not listed as admissible.
    Reward:
        The page's raw reward, from -1 to 1, without the original's discount by time.
        The page holds this verdict itself. What is typed is text: none of the 24 pages runs it, and other pages of the
        package that put it into their HTML could be made to.
    End:
        The page says when it is done; a reward of 1 is success. There is no time limit: a second passes with each
        action.
    Splits:
        train, validation and test are ranges of seeds. Small tasks may have equal variants in two splits.
    Expert:
        None.
    Floors:
        ``manyturn evaluate random --env manyturn/MiniWoB-v0`` measures the random policy. The simplest pages can be
        solved by one lucky click.

    Args:
        split: train, validation or test.
        tasks: names of tasks, such as ``click-checkboxes``; default: those that a script has solved by number.
        max_turns: default 20.
    """

    instructions = f"Do what the first lines of the page ask for.\n\n{INSTRUCTIONS}"
    harmless = (*TextEnv.harmless, "tasks")
    max_turns = 20
    part_names = ()

    def __init__(self, split: str = "train", tasks: Sequence[str] = PLAYABLE, max_turns: int | None = None):
        require_browser()
        names = tuple(dict.fromkeys(tasks))
        if not names:
            raise ValueError("tasks names no task: name one, such as click-button")
        self._addresses = {name: file_of(name).as_uri() for name in names}
        super().__init__(split, max_turns)
        self._tasks = {split: Variants(split, names) for split in self.splits}
        self._tab = Tab(f"{folder().as_uri()}/", scripts=True)
        self._reader = PageReader(self._tab)

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        seed = json.dumps(task.params["seed"])
        self._tab.open(
            self._addresses[task.params["task"]],
            f"() => {{ core.EPISODE_MAX_TIME = {_NO_LIMIT_MS}; Math.seedrandom({seed});"
            " core.startEpisodeReal(); core.hideDisplay(); }",
        )
        self._reader.look()
        return self._reader.text

    def respond(self, action: str) -> Turn:
        problem = self._reader.act(action)
        if problem is not None:
            return self.invalid(f"{problem}\n{self._reader.text}")
        done, reward = self._tab.value(_RESULT)
        if not done:
            return self.go_on(self._reader.text)
        if not isinstance(reward, int | float):
            raise BrowserError(f"the task's reward is no number: {reward!r:.80}")
        return self.succeed("Done.", reward) if reward == 1 else self.fail("The task is over.", reward)

    def admissible(self) -> list[str]:
        """Clicks on what is shown, options of lists, ways to scroll; what can be typed has no list."""
        actions = []
        for number, control in self._reader.shown().items():
            if control.disabled:
                continue
            actions += [f"select[{number}] {option}" for option in control.options]
            if not control.options:
                actions.append(f"click[{number}]")
        return [*actions, *self._reader.scrolls()]

    def close(self) -> None:
        self._tab.close()


@cache
def folder() -> Path:
    """The package's folder of HTML files. Raises NeedsSetup. The package itself, which wants selenium, is not run."""
    spec = importlib.util.find_spec("miniwob")
    if spec is None or spec.origin is None:
        raise NeedsSetup("the package miniwob is not installed: pip install 'manyturn[web,miniwob]'")
    return Path(spec.origin).resolve().parent / "html"


def file_of(name: str) -> Path:
    """The page of a task. Raises ValueError for a name that there is not, NeedsSetup without the package."""
    pages = {file.stem: file for file in (folder() / "miniwob").glob("*.html")}
    if name not in pages:
        raise ValueError(f"MiniWoB++ has no task {name!r}: there are {', '.join(sorted(pages))}")
    return pages[name]
