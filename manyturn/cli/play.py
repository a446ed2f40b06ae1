"""A person plays an environment in the terminal."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from manyturn.envs.conformance.probe_episodes import text_env_of
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.terminal.escape import visible

HELP = "? lists commands, ! shows the expert's move, !! plays it; :undo :state :new :say TEXT :quit"
Read = Callable[[str], str]


def play(
    env: str,
    env_args: Mapping[str, Any] | None = None,
    *,
    split: str = "train",
    task: str | None = None,
    seed: int = 0,
    console: Console | None = None,
    read: Read | None = None,
) -> bool:
    """Play until the person leaves.

    Args:
        env: id or ``FILE.py:Class``.
        env_args: arguments of the environment's constructor.
        split: where tasks are drawn from.
        task: id of the first task; default: the seed draws one.
        seed: decides which tasks are drawn, and what is random inside an episode; console: where all is shown.
        read: asks for a line; raises EOFError when there are no more. Default: standard input.

    Returns:
        False if the environment raised, which is shown and ends the episode.
    """
    handle = EnvHandle(env, env_args)
    try:
        game = _Game(handle, console or Console(highlight=False), split, seed)
        first = game.draw() if task is None else find_task(handle, task)
        game.say(f"{handle.instructions or '(The environment gives no instructions.)'}\n[{HELP}]")
        try:
            game.begin(first)
            _turns(game, read or _read)
        except KeyboardInterrupt:
            game.say("")  # the prompt's line ends before the shell's begins
        return game.sound
    finally:
        handle.close()


def find_task(handle: EnvHandle, task_id: str) -> Task:
    """The task with this id, in any split; raises ValueError with an id that would do."""
    for split in handle.splits:
        tasks = handle.tasks(split)
        finder = getattr(tasks, "find", None) or {each.id: each for each in tasks}.get
        if (task := finder(task_id)) is not None:
            return task
    example = handle.tasks(handle.splits[0])[0].id
    raise ValueError(f"{handle.name} has no task {task_id!r}; an id looks like {example!r}")


def _read(prompt: str) -> str:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives input() line editing and a history
    line = input(prompt)
    if not sys.stdin.isatty():
        print(visible(line, sys.stdout.encoding or "ascii"))  # a transcript shows both sides
    return line


def _turns(game: "_Game", read: Read) -> None:
    """Ask and answer until the person quits or there is no more input."""
    while True:
        try:
            line = read("> ")
        except EOFError:
            game.say("")
            return
        if line.strip() == ":quit":
            return
        try:
            game.answer(line)
        except EnvError as error:
            game.sound, game.live = False, False
            game.say(f"The environment raised, so the episode is lost: {error}. Go on with :undo or :new.")


class _Game:
    """One person's episode, and the way back through it.

    Attributes:
        live: the episode goes on.
        sound: the environment has not raised.
    """

    def __init__(self, handle: EnvHandle, console: Console, split: str, seed: int):
        self._handle, self._console, self._seed = handle, console, seed
        self._tasks = handle.tasks(split)
        if not len(self._tasks):
            raise ValueError(
                f"{handle.name} has no tasks in split {split!r}: choose another of {', '.join(handle.splits)}"
            )
        self._env = text_env_of(handle)
        self._most = getattr(self._env or handle.env, "max_turns", None)
        self._drawn = self._turn = 0
        self._total = 0.0
        self._back: list[tuple[Answer, float, bytes]] = []
        self._task, self._step = self._tasks[0], Answer("")
        self.live, self.sound = False, True

    def say(self, text: str, style: str = "") -> None:
        """Print text of the environment or of ours; no markup, no emoji codes, no control characters."""
        self._console.print(Text(visible(text, self._console.encoding), style), soft_wrap=True)

    def draw(self) -> Task:
        """The next task."""
        self._drawn += 1
        return self._tasks[int(generator("play", self._seed, self._drawn).integers(len(self._tasks)))]

    def begin(self, task: Task) -> None:
        """Start a task from its beginning."""
        self._back, self._turn, self._total, self._task, self.live = [], 0, 0.0, task, False
        self._step = self._handle.reset(task, self._seed)
        self.live = not self._step.ended
        self.say(f"\nTask {task.id}{f', {task.difficulty}' if task.difficulty else ''}", "bold")
        self.say(self._step.observation)

    def answer(self, line: str) -> None:
        """Effect of one line typed by the person."""
        word, _, rest = line.strip().partition(" ")
        meta = {"?": self._list, "!": self._hint, "!!": self._expert, ":undo": self._undo, ":state": self._state}
        if not word:
            self.say(f"[Nothing is sent. {HELP}]")
        elif line.strip() == ":help":
            self.say(f"[{HELP}]")
        elif line.strip() == ":new":
            self.begin(self.draw())
        elif word.startswith(":") and word != ":say" and (rest or word not in meta):
            self.say(f"[There is no {line.strip()}. {HELP}]")
        elif not self.live and word not in (":undo", ":state"):
            self.say("[The episode has ended: :new, :undo or :quit.]")
        elif word == ":say":
            self._act(line.lstrip().removeprefix(":say").removeprefix(" "))
        elif not rest and word in meta:
            meta[word]()
        else:
            self._act(line)

    def _act(self, action: str) -> None:
        if self._env is not None:
            self._back.append((self._step, self._total, self._env.snapshot()))
        self._step = step = self._handle.step(action)
        self._turn, self._total, self.live = self._turn + 1, self._total + step.reward, not step.ended
        self.say(step.observation)
        parts = ", ".join(f"{name} {value:+g}" for name, value in step.parts.items())
        facts = [f"turn {self._turn}{f' of {self._most}' if self._most else ''}"]
        facts.append(f"reward {step.reward:g}{f' ({parts})' if parts else ''}")
        facts += [f"progress {step.progress:.0%}"] if step.progress is not None else []
        facts += [] if step.format_valid else ["not readable"]
        facts += [] if step.understood or not step.format_valid else ["not understood"]
        self.say(f"[{', '.join(facts)}]", "dim")
        if step.ended:
            won = {True: "Success", False: "No success", None: "The end"}[step.success]
            won += "; the turns are used up" if step.truncated else ""
            self.say(f"{won}. Return {self._total:g} in {self._turn} turns. :new, :undo or :quit?", "bold")

    def _list(self) -> None:
        if self._step.admissible is None:
            self.say("[This environment lists no commands; its instructions name them.]")
        else:
            shown = [Text(visible(command, self._console.encoding)) for command in self._step.admissible]
            self._console.print(Columns(shown or [Text("[none]")], padding=(0, 3)))

    def _hint(self) -> None:
        self.say(self._handle.expert() if self._handle.has_expert else "[This environment has no expert.]", "italic")

    def _expert(self) -> None:
        self._hint()
        if self._handle.has_expert:
            self._act(self._handle.expert())

    def _undo(self) -> None:
        if self._env is None or not self._back:
            self.say("[Nothing to undo.]" if self._env else "[Nothing can be undone: only a TextEnv has snapshots.]")
            return
        self._step, self._total, data = self._back.pop()
        self._env.restore(data)
        self._turn, self.live = len(self._back), True
        self.say(f"[Back at turn {self._turn}.]", "dim")
        self.say(self._step.observation)

    def _state(self) -> None:
        anchor = repr(self._env.anchor()) if self._env is not None else self._step.anchor
        progress = "unknown" if self._step.progress is None else f"{self._step.progress:.0%}"
        self.say(f"task {self._task.id}, split {self._task.split}, turn {self._turn}, return {self._total:g}")
        self.say(f"anchor {anchor}\nprogress {progress}")
