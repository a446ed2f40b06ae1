"""The expert: reproduces the fault, looks, puts in the known fix by the tools, runs the tests and submits."""

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from manyturn.envs.software.tools import occurrences

Call = tuple[str, dict[str, Any]]


class Edit(NamedTuple):
    """A replacement in a file: ``old`` stands exactly once there, unless it is empty and the file is to be made."""

    path: str
    old: str
    new: str
    line: int


def next_edit(fix: Mapping[str, bytes], read: Callable[[str], bytes | None]) -> Edit | None:
    """The next replacement on the way to the known fix; None when it is all there.

    Args:
        fix: path -> content after the fix.
        read: content of a file as it is, None if there is none.
    """
    for path, content in sorted(fix.items()):
        target, current = content.decode(errors="surrogateescape"), read(path)
        if current is None or (not current and target):
            return Edit(path, "", target, 1)
        if current != content:
            return _first_difference(path, current.decode(errors="surrogateescape"), target)
    return None


def _first_difference(path: str, before: str, after: str) -> Edit:
    """The first run of lines that differs, with as many lines around it as make the old text the only one."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    _, first, last, new_first, new_last = next(block for block in blocks if block[0] != "equal")
    if last - first == new_last - new_first == 1:
        one, other = _bare(old[first], new[new_first])
        if occurrences(before, one) == 1:
            return Edit(path, one, other, first + 1)
    top, bottom = first, last
    while occurrences(before, "".join(old[top:bottom])) != 1:
        if top == 0 and bottom == len(old):
            break
        top, bottom = max(0, top - 1), min(len(old), bottom + 1)
    text = "".join(old[top:first]) + "".join(new[new_first:new_last]) + "".join(old[last:bottom])
    return Edit(path, "".join(old[top:bottom]), text, first + 1)


def _bare(old: str, new: str) -> tuple[str, str]:
    """Two lines without the blanks around them, as far as both have the same: short, and all on one line."""
    head = len(old) - len(old.lstrip())
    tail = len(old.rstrip())
    if old.strip() and new[:head] == old[:head] and new.endswith(old[tail:]):
        return old[head:tail], new[head : len(new) - (len(old) - tail)]
    return old, new
