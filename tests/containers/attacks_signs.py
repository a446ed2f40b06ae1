"""The signs by which the success of an attack would show."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from attacks import Attack

from manyturn.containers.sandbox import Ran, SandboxLimits

GRACE = 5.0
"""Seconds that a command may take beyond its deadline, and a neighbour to answer, on a machine that is busy."""


@dataclass
class Seen:
    """What was to be seen during and after an attack, from outside.

    Attributes:
        limits: that the sandbox promised to keep.
        secrets: what it is -> text that must not come out.
        answers: everything that the sandbox said, of the attack, of its requests and of the probe.
        ran: what came of the script, unless the sandbox was lost.
        screen: the script's output as it would be printed.
        seconds: until the script's answer came.
        lost: why the sandbox was given up; empty if it still answers.
        wrong: honest questions that were not answered as they should be.
        found: what the watch saw, each beginning with the name of its sign.
        memory, processes, processor: the most that was used: bytes, number, processors on average.
        rooms: place -> bytes and inodes taken after the script.
        contacts: by which way the host was reached.
        changed: what is not as it was, each beginning with the name of its sign.
        left: command lines of processes that outlived the command.
        behind: what was there after the sandbox was emptied.
        outside: what a request brought to where it must not be.
        neighbour: seconds that the neighbour's answers took; infinite for a wrong one.
    """

    attack: Attack
    mark: str
    limits: SandboxLimits
    secrets: Mapping[str, str]
    answers: list[object] = field(default_factory=list)
    ran: Ran | None = None
    screen: str = ""
    seconds: float = 0.0
    lost: str = ""
    wrong: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    memory: int = 0
    processes: int = 0
    processor: float = 0.0
    rooms: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    contacts: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    probed: str = ""
    outside: list[str] = field(default_factory=list)
    neighbour: list[float] = field(default_factory=list)


def _secret(seen: Seen) -> list[str]:
    said = repr(seen.answers)
    return [f"{name} came out" for name, text in seen.secrets.items() if text in said]


def _reached(seen: Seen) -> list[str]:
    said = [line for line in (seen.ran.output if seen.ran else "").splitlines() if line.startswith("reached ")]
    return said + [text for text in seen.changed if text.startswith("interfaces")]


def _limits(seen: Seen) -> list[str]:
    limits, found = seen.limits, []
    if seen.memory > (limits.memory_mb + 1) << 20:
        found.append(f"{seen.memory >> 20} MB of memory")
    if seen.processes > limits.processes:
        found.append(f"{seen.processes} processes")
    if seen.seconds > 0.5 and seen.processor > 1.3 * limits.cpus + 0.2:
        found.append(f"{seen.processor:.2f} processors")
    for place, (size, inodes) in seen.rooms.items():
        room = limits.workspace_mb if place == "workspace" else limits.scratch_mb
        if size > room << 20 or inodes > limits.files:
            found.append(f"{size >> 20} MB and {inodes} inodes in {place}")
    return found


def _late(seen: Seen) -> list[str]:
    allowed = seen.attack.seconds + GRACE
    return [f"an answer after {seen.seconds:.1f} s"] if seen.seconds > allowed else []


def _answer(seen: Seen) -> list[str]:
    if seen.ran is None:
        return []
    found = []
    if len(seen.ran.output) > seen.limits.output_bytes + 100:
        found.append(f"{len(seen.ran.output)} characters of output")
    if len(seen.ran.report) > 8 << 20:
        found.append(f"{len(seen.ran.report)} bytes of report")
    if seen.attack.expect is not None and seen.ran.output != seen.attack.expect:
        found.append(f"said {seen.ran.output[:100]!r}")
    return found


def _screen(seen: Seen) -> list[str]:
    obeyed = {c for c in seen.screen if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return [f"a terminal would hear {sorted(obeyed)!r}"] if obeyed else []


def _server(seen: Seen) -> list[str]:
    """A script that is after the server must not even end it."""
    ended = seen.lost and seen.attack.aim == "server" and seen.attack.request is None
    return seen.wrong + ([f"the sandbox was lost: {seen.lost}"] if ended else [])


def _persist(seen: Seen) -> list[str]:
    return seen.behind + (["the next episode found it"] if seen.mark in seen.probed else [])


def _neighbour(seen: Seen) -> list[str]:
    slow = [seconds for seconds in seen.neighbour if seconds > GRACE]
    return [f"the neighbour answered after {max(slow):.1f} s"] if slow else []


def _named(name: str) -> Callable[[Seen], list[str]]:
    return lambda seen: [text for text in (*seen.found, *seen.changed) if text.startswith(name)]


SIGNS: dict[str, Callable[[Seen], list[str]]] = {
    "secret": _secret,
    "contact": lambda seen: seen.contacts,
    "reached": _reached,
    "interfaces": _named("interfaces"),
    "rights": _named("rights"),
    "namespace": _named("namespace"),
    "object": _named("object"),
    "host": _named("host"),
    "image": _named("image"),
    "limits": _limits,
    "late": _late,
    "answer": _answer,
    "screen": _screen,
    "server": _server,
    "left": lambda seen: seen.left,
    "persist": _persist,
    "outside": lambda seen: seen.outside,
    "neighbour": _neighbour,
}


def succeeded(seen: Seen) -> dict[str, list[str]]:
    """The signs that show: name -> what was seen. An attack is looked at for all of them, whatever its aim."""
    return {name: found for name, sign in SIGNS.items() if (found := sign(seen))}
