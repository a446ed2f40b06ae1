"""Suite: named panels, with hashes of their tasks and of their environments' answers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.panel import Panel, PanelError

NEEDS = {"engine": "a container engine", "browser": "Chromium", "data": "files or packages of others"}
"""What a panel's environment may lack on a machine. Panels that need nothing are the core."""
_VERSION = 1


class SuiteError(ValueError):
    """The suite is not what was frozen, or cannot be played as asked; the text says what would fix it."""


@dataclass(frozen=True)
class SuitePanel:
    """A panel of a suite.

    Attributes:
        name: unique in the suite, such as ``maze-hard``.
        need: a key of ``NEEDS``, or empty.
        panel: the N tasks.
        replays: for the first tasks the actions of one episode each.
        answers: hash of the rules and of what the environment answers to these actions, see ``answers_of``.
    """

    name: str
    need: str
    panel: Panel
    replays: tuple[tuple[str, ...], ...]
    answers: str

    @property
    def identity(self) -> str:
        """Hash of everything that decides results on the panel."""
        args = json.dumps(dict(self.panel.args), sort_keys=True)
        return digest("suite panel", self.name, self.need, self.panel.hash, args, self.replays, self.answers)


@dataclass(frozen=True)
class Suite:
    """Panels under one name.

    Attributes:
        frozen_with: the version of manyturn that froze it.
    """

    name: str
    panels: tuple[SuitePanel, ...]
    frozen_with: str

    @cached_property
    def hash(self) -> str:
        """Hash of the panels, the same on every machine. Results with one hash can be compared."""
        return digest("suite", tuple(one.identity for one in self.panels))

    @property
    def core(self) -> tuple[SuitePanel, ...]:
        """The panels that need nothing besides manyturn: every complete result has them."""
        return tuple(one for one in self.panels if not one.need)

    def chosen(self, words: Sequence[str]) -> tuple[SuitePanel, ...]:
        """The panels whose name is among the words, or begins with one and a dash; all, without words."""
        if not words:
            return self.panels
        for word in words:
            if not any(_is(one, word) for one in self.panels):
                names = [one.name for one in self.panels]
                raise SuiteError(unknown(f"panel of {self.name}", word, [*names, *_families(names)]))
        return tuple(one for one in self.panels if any(_is(one, word) for word in words))

    def to_json(self) -> str:
        """The suite as text, a line for each panel; inverse of ``from_json``."""
        head = {"schema_version": _VERSION, "name": self.name, "hash": self.hash, "frozen_with": self.frozen_with}
        lines = ",\n".join(json.dumps(_plain(one), ensure_ascii=False) for one in self.panels)
        return f'{json.dumps(head)[:-1]}, "panels": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises SuiteError if the text is no suite, or its hash does not fit."""
        try:
            plain = json.loads(text)
            version, digest = plain["schema_version"], plain["hash"]
            if version != _VERSION:
                raise SuiteError(f"the suite has schema version {version}, this manyturn reads {_VERSION}: upgrade it")
            suite = cls(plain["name"], tuple(map(_panel, plain["panels"])), plain["frozen_with"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, SuiteError | PanelError):
                raise
            raise SuiteError(f"this is not a suite: {type(error).__name__}: {error}") from error
        if suite.hash != digest:
            raise SuiteError(
                f"the panels give the hash {suite.hash}, the file says {digest}: it was edited. Take the file from "
                "where it was made, or freeze another suite"
            )
        return suite

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a suite's file; raises SuiteError with its name."""
        try:
            return cls.from_json(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SuiteError(f"there is no {file}: make it with manyturn suite freeze PLAN.toml --out {file}") from None
        except (SuiteError, PanelError, UnicodeDecodeError) as error:
            raise SuiteError(f"{file}: {error}") from None

    def save(self, file: Path) -> None:
        """Write the suite to a file, completely or not at all."""
        replace_text(file, self.to_json())

    def __iter__(self) -> Iterator[SuitePanel]:
        return iter(self.panels)


def _is(one: SuitePanel, word: str) -> bool:
    return one.name == word or one.name.startswith(f"{word}-")


def _families(names: Sequence[str]) -> list[str]:
    """Common prefix of several names."""
    heads = [name.partition("-")[0] for name in names]
    return sorted({head for head in heads if heads.count(head) > 1})


def _plain(one: SuitePanel) -> dict[str, Any]:
    panel = one.panel
    return {
        **{"name": one.name, "need": one.need, "env": panel.env, "args": dict(panel.args), "split": panel.split},
        **{"hash": panel.hash, "answers": one.answers, "replays": one.replays},
        "tasks": list(zip(panel.tasks, panel.contents, strict=True)),
    }


def _panel(plain: dict[str, Any]) -> SuitePanel:
    if plain["need"] not in ("", *NEEDS):
        raise SuiteError(f"{plain['name']} needs {plain['need']!r}: {', '.join(NEEDS)} are known")
    ids, contents = zip(*plain["tasks"], strict=True)
    panel = Panel(plain["env"], plain["split"], ids, contents, plain["args"])
    replays = tuple(map(tuple, plain["replays"]))
    return SuitePanel(plain["name"], plain["need"], panel, replays, plain["answers"])
