"""Dialogues kept in a JSON-lines file, and users that play them again.

A line is one utterance: the key of all that led to it, and what the user said. Whatever the agent says a second time
brings the same answer; what it never said has none.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.regular_file import regular_file
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError


class ReplayOptions(Options):
    """Recording to play."""

    file: Path
    """A file that ``record`` has written."""


class _Key:
    """All that led to an utterance: task, episode's chance, what the agent said and tools answered, in one hash."""

    def __init__(self, task: Task, rng: np.random.Generator):
        self.hash = digest("dialogue", task.id, task.content, json.dumps(rng.bit_generator.state, sort_keys=True))

    def add(self, text: str, cue: Mapping[str, Any]) -> str:
        self.hash = digest("dialogue", self.hash, text, json.dumps(dict(cue), sort_keys=True))
        return self.hash

    def add_results(self, results: Sequence[str]) -> str:
        self.hash = digest("results", self.hash, json.dumps(list(results)))
        return self.hash


class RecordedUser(User):
    """Another user, everything it says being appended to a file.

    Args:
        user: who speaks.
        file: made if need be; several recordings may follow one another in it, of one and the same user.
    """

    def __init__(self, user: User, file: str | Path):
        self.name, self._user, self._file = user.name, user, Path(file)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._key = _Key(task, rng)
        text = self._user.begin(task, rng)
        self._write(self._key.hash, Heard(text))
        return text

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        key = self._key.add(text, cue)
        heard = self._user.hear(text, cue)
        self._write(key, heard)
        return heard

    def see(self, results: Sequence[str]) -> Heard:
        key = self._key.add_results(results)
        heard = self._user.see(results)
        self._write(key, heard)
        return heard

    def save(self) -> Any:
        return [self._key.hash, self._user.save()]

    def load(self, state: Any) -> None:
        self._key.hash, inner = state
        self._user.load(inner)

    def _write(self, key: str, heard: Heard) -> None:
        line = {"user": self.name, "key": key, **heard._asdict()}
        line |= {"parts": dict(heard.parts), "info": dict(heard.info), "calls": list(heard.calls)}
        with self._file.open("a", encoding="utf-8") as file:  # one write to a line, which processes may share
            file.write(masked(json.dumps(line)) + "\n")


class ReplayUser(User):
    """Says what was recorded.

    Args:
        options: the file.

    Raises:
        ValueError: the file cannot be read, or holds several users' utterances.
    """

    def __init__(self, options: ReplayOptions):
        self._file = options.file
        self._lines: dict[str, Heard] = {}
        names = set()
        try:
            for line in regular_file(options.file, "recording").read_text(encoding="utf-8").splitlines():
                plain = json.loads(line)
                names.add(plain["user"])
                fields = {name: plain[name] for name in Heard._fields if name in plain}
                self._lines[plain["key"]] = Heard(**fields)
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"{options.file} is no recording of a user ({problem}): make one with 'record'") from error
        if len(names) != 1:
            raise ValueError(f"{options.file} holds {len(names)} users; a recording is of one: record into a new file")
        self.name = f"replay of {names.pop()}"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._key = _Key(task, rng)
        return self._find(self._key.hash).utterance

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        return self._find(self._key.add(text, cue))

    def see(self, results: Sequence[str]) -> Heard:
        return self._find(self._key.add_results(results))

    def save(self) -> Any:
        return self._key.hash

    def load(self, state: Any) -> None:
        self._key.hash = state

    def _find(self, key: str) -> Heard:
        if key not in self._lines:
            raise UserError(
                f"{self._file} has no answer to this: the task, the seed, the agent's words or the tools' answers "
                "differ from what was recorded; record again with the user itself"
            )
        return self._lines[key]
