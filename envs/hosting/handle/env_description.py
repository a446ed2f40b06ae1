"""Record of an environment that is open somewhere: all that its seats have to know of it, but for the episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_fingerprint import fingerprint_of, identity_of
from manyturn.envs.hosting.handle.env_handle import EnvHandle

_OF_THE_PROCESS = ("tasks", "vary", "split_rule")  # facts that are functions of the environment


@dataclass(frozen=True)
class EnvRecord:
    """Facts about an open environment, of this process or of another.

    Attributes:
        facts: name, instructions and abilities.
        identity: of the environment with its wrappers.
        wrappers: the turn-level rewards around it, as plain values.
        side_by_side: episodes that one process can hold open together; None without a limit.
        waits_outside: each episode may be played in a thread of its own.
        world: gives digests of what must be equal elsewhere for the same task, seed and actions to give the same
            episode.
    """

    facts: EnvFacts
    identity: EnvIdentity
    wrappers: tuple[Mapping[str, Any], ...]
    side_by_side: int | None
    waits_outside: bool
    world: Callable[[], dict[str, str]]

    @classmethod
    def of(cls, handle: EnvHandle) -> Self:
        """The record of an environment that is open here."""
        return cls(
            handle.facts(),
            identity_of(handle),
            handle.wrappers,
            handle.side_by_side,
            handle.waits_outside,
            lambda: fingerprint_of(handle),
        )

    def plain(self) -> dict[str, Any]:
        """The record as JSON values, without the tasks."""
        facts = {name: value for name, value in vars(self.facts).items() if name not in _OF_THE_PROCESS}
        return {
            **{"facts": facts, KEY: self.identity.plain(), "wrappers": list(self.wrappers)},
            **{"side_by_side": self.side_by_side, "waits_outside": self.waits_outside, "world": self.world()},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Inverse of ``plain``; the tasks are only where the environment is."""
        name, world = plain["facts"]["name"], dict(plain["world"])

        def tasks(split: str) -> Sequence[Task]:
            raise RuntimeError(f"the tasks of {name} are not in this process")

        lists = {word: tuple(value) for word, value in plain["facts"].items() if isinstance(value, list)}
        identity = EnvIdentity.of(plain)
        assert identity is not None
        facts = EnvFacts(**{**plain["facts"], **lists, "tasks": tasks})
        limits = plain["side_by_side"], plain["waits_outside"]
        return cls(facts, identity, tuple(plain["wrappers"]), *limits, lambda: world)
