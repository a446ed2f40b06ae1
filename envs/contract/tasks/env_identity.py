"""Identity of an environment: the facts by which two figures are known to be of one environment, or of two."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from manyturn.envs.contract.random_keys import digest

KEY = "env_identity"
"""The name of an identity in summaries, panels, checkpoints, trajectories and on the wires."""
_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class EnvIdentity:
    """Identity of an environment, which stands next to its figures.

    Nothing in it depends on the machine: it holds no folder and no time.

    Attributes:
        id: its id, or ``FILE.py:Class`` without the folder.
        version: of the id, such as 0 of ``Maze-v0``; None where the name has none.
        files: file of the environment, or folder of its package, -> hash of the content.
        packages: distribution that it is from -> version.
        wrappers: turn-level rewards around it with all their options, the innermost first.
        wrapper_files: the same as ``files`` of wrappers from plugins.
        members: identities of the environments of a run of several, by name; empty where there is one.
    """

    id: str
    version: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    wrappers: tuple[Mapping[str, Any], ...] = ()
    wrapper_files: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, "EnvIdentity"] = field(default_factory=dict)

    @property
    def bare(self) -> Self:
        """The identity of the environment without wrappers, as a panel has it."""
        members = {name: member.bare for name, member in self.members.items()}
        return replace(self, wrappers=(), wrapper_files={}, members=members)

    @property
    def without_rewards(self) -> Self:
        """The identity without the options of wrappers; their files stay."""
        return replace(self, wrappers=(), members={name: one.without_rewards for name, one in self.members.items()})

    @property
    def short(self) -> str:
        """Hash of everything, for the eye: 8 hexadecimal digits."""
        return digest("env identity", self.plain())[:8]

    def plain(self) -> dict[str, Any]:
        """The identity as JSON values."""
        return {
            "id": self.id,
            "version": self.version,
            "files": dict(self.files),
            "packages": dict(self.packages),
            "wrappers": [dict(wrapper) for wrapper in self.wrappers],
            "wrapper_files": dict(self.wrapper_files),
            **({"members": {name: member.plain() for name, member in self.members.items()}} if self.members else {}),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self | None:
        """The identity in a summary, a panel, a checkpoint or a message; None where it is unknown."""
        plain = record.get(KEY)
        if not isinstance(plain, Mapping) or not isinstance(plain.get("id"), str):
            return None
        version, wrappers = plain.get("version"), plain.get("wrappers")
        members = {name: cls.of({KEY: one}) for name, one in (plain.get("members") or {}).items()}
        return cls(
            id=plain["id"],
            version=version if isinstance(version, int) else None,
            files=_texts(plain.get("files")),
            packages=_texts(plain.get("packages")),
            wrappers=tuple(one for one in wrappers if isinstance(one, Mapping)) if isinstance(wrappers, list) else (),
            wrapper_files=_texts(plain.get("wrapper_files")),
            members={name: one for name, one in members.items() if one is not None},
        )


def differences(first: EnvIdentity, other: EnvIdentity) -> list[str]:
    """Words for each fact that differs, such as ``doors.py differs``; empty where both are one environment.

    >>> differences(EnvIdentity(id="Maze-v0"), EnvIdentity(id="Maze-v0", packages={"mazes": "1.1"}))
    ['package mazes none and 1.1']
    """
    words = [
        f"{name} {one} and {two}"
        for name, one, two in (("id", first.id, other.id), ("version", first.version, other.version))
        if one != two
    ]
    for files, others in ((first.files, other.files), (first.wrapper_files, other.wrapper_files)):
        words += [
            f"{name} differs" if name in files and name in others else f"{name} is in one of them only"
            for name in sorted({**files, **others})
            if files.get(name) != others.get(name)
        ]
    words += [
        f"package {name} {first.packages.get(name, 'none')} and {other.packages.get(name, 'none')}"
        for name in sorted({**first.packages, **other.packages})
        if first.packages.get(name) != other.packages.get(name)
    ]
    for name in [name for name in first.members if name in other.members]:
        words += [f"{name}: {word}" for word in differences(first.members[name], other.members[name])]
    rewards = [json.dumps([dict(wrapper) for wrapper in one.wrappers], sort_keys=True) for one in (first, other)]
    return words if rewards[0] == rewards[1] else [*words, f"wrappers {rewards[0]} and {rewards[1]}"]


def arg_differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Words for each argument of the constructor that differs.

    >>> arg_differences({"size": 3}, {"size": 4, "seed": 1})
    ['argument seed none and 1', 'argument size 3 and 4']
    """
    values = [
        {name: json.dumps(value, sort_keys=True, default=str) for name, value in one.items()} for one in (first, other)
    ]
    return [
        f"argument {name} {values[0].get(name, 'none')} and {values[1].get(name, 'none')}"
        for name in sorted({**values[0], **values[1]})
        if values[0].get(name) != values[1].get(name)
    ]


def listed(words: Sequence[str]) -> str:
    """The first of the differences, for one line."""
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f", and {more} more" if more > 0 else "")


def _texts(value: Any) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, Mapping) else {}
