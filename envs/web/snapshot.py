"""A page as text: Playwright's accessibility tree, read line by line, with a number for all that can be acted on.

The tree is written in a part of YAML: ``- role "name" [state] [ref=e7]: text`` with children indented below. Only that
part is read here. What a page says can never pass for a control: a control's line is the only one that begins with a
bracket.
"""

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

SCREEN = 4_000  # characters that are shown at once
FIELDS = frozenset({"textbox", "searchbox", "spinbutton", "combobox"})
_CONTROLS = FIELDS | frozenset(
    "button link checkbox radio switch slider tab option listbox treeitem"
    " menuitem menuitemcheckbox menuitemradio".split()
)
_SAID = frozenset("heading group radiogroup dialog alertdialog alert img tabpanel progressbar".split())
_KEY = re.compile(r'(/?[\w-]+)(?: ("(?:[^"\\]|\\.)*"))?((?: \[[^\]]*\])*)(?::(?: (.*))?)?$', re.DOTALL)
_STATE = re.compile(r"\[([^\]]*)\]")
_HIDDEN_STATES = ("ref=", "cursor=", "box=", "active")
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_MISTAKABLE = re.compile(r"[\W\u115f\u1160\u3164\uffa0]*\[")  # those letters are blank


class SnapshotError(ValueError):
    """The text is no accessibility tree as Playwright writes it."""


class _Node(NamedTuple):
    depth: int
    role: str
    name: str
    states: tuple[str, ...]
    text: str

    @property
    def reference(self) -> str:
        return next((state[4:] for state in self.states if state.startswith("ref=")), "")

    @property
    def acted_on(self) -> bool:
        return bool(self.reference) and (self.role in _CONTROLS or "cursor=pointer" in self.states)


@dataclass(frozen=True)
class Control:
    """Something that can be acted on.

    Attributes:
        role, name: as a screen reader says them.
        reference: Playwright's name of the element, until the next snapshot.
        screen: number of the screen that shows it, from 0.
        value: what a field holds.
        options: texts of a list that can be chosen from.
        disabled: it is shown, and does nothing.
    """

    role: str
    name: str
    reference: str
    screen: int
    value: str = ""
    options: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True)
class PageSnapshot:
    """A page.

    Attributes:
        screens: its text in pieces of at most ``SCREEN`` characters; at least one.
        controls: in the order of the page; control 1 comes first.
    """

    screens: tuple[str, ...]
    controls: tuple[Control, ...]


def read(tree: str) -> PageSnapshot:
    """A page's text and controls. Raises SnapshotError."""
    nodes = [_node(line) for line in tree.split("\n") if line.strip()]
    screens, controls = [""], list[Control]()
    place = 0
    while place < len(nodes):
        node, below = nodes[place], _below(nodes, place)
        place += 1
        number = len(controls) + 1 if node.acted_on else 0
        if number and not node.name and node.role not in _CONTROLS and not any(one.acted_on for one in below):
            texts = [node.text, *(inner.text or inner.name for inner in below)]
            node = node._replace(name=" ".join(filter(None, texts)), text="")
            place += len(below)  # all of it is what is clicked
        line = _line(node, number, leaf=not below)
        if not line or (node.role == "text" and controls and line == controls[-1].name):  # a label says the name again
            continue
        _append(screens, line)
        if number:
            controls.append(_control(node, below, len(screens) - 1))
    return PageSnapshot(tuple(screens), tuple(controls))


def _control(node: _Node, below: list[_Node], screen: int) -> Control:
    options = tuple(inner.name or inner.text for inner in below if inner.role == "option")
    value = node.text or next((inner.text for inner in below if inner.role == "text"), "")
    return Control(node.role, node.name, node.reference, screen, value, options, "disabled" in node.states)


def _node(line: str) -> _Node:
    body = line.lstrip(" ")
    depth, body = len(line) - len(body), body.removeprefix("- ")
    if body.startswith("'"):
        end = re.match(r"'((?:[^']|'')*)'", body)
        if end is None:
            raise SnapshotError(f"a key without an end: {line:.200}")
        body = end[1].replace("''", "'") + body[end.end() :]
    match = _KEY.match(body)
    if match is None:
        raise SnapshotError(f"not a line of an accessibility tree: {line:.200}")
    role, name, states, text = match.groups()
    name, text = json.loads(name) if name else "", _plain(text or "")
    return _Node(depth, role, " ".join(name.split()), tuple(_STATE.findall(states)), " ".join(text.split()))


def _plain(value: str) -> str:
    """Inverse of quoting a value."""
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 3 else _ESCAPED.get(m[1], m[1]), value[1:-1])


def _line(node: _Node, number: int, leaf: bool) -> str:
    """Text for a node, "" for none."""
    if node.role == "/placeholder":
        return f"placeholder: {node.text}"
    if node.role.startswith("/"):
        return ""  # an address, which nobody needs who clicks by number
    if not number and node.role not in _SAID and node.role != "option":
        text = node.text or (node.name if leaf else "")
        return json.dumps(text, ensure_ascii=False) if _MISTAKABLE.match(text) else text
    states = [f"[{state}]" for state in node.states if not state.startswith(_HIDDEN_STATES)]
    role = node.role if node.role in _CONTROLS | _SAID else "clickable"
    words = [role, *([json.dumps(node.name, ensure_ascii=False)] if node.name else []), *states]
    line = " ".join([f"[{number}]", *words] if number else words)
    return f"{line}: {node.text}" if node.text else line


def _below(nodes: list[_Node], place: int) -> list[_Node]:
    lines = []
    for node in nodes[place + 1 :]:
        if node.depth <= nodes[place].depth:
            break
        lines.append(node)
    return lines


def _append(screens: list[str], line: str) -> None:
    """Add a line to the last screen, or begin others with it."""
    for start in range(0, len(line), SCREEN - 1):
        part = line[start : start + SCREEN - 1]
        if start and _MISTAKABLE.match(part):
            part = f'"{part}'
        if screens[-1] and len(screens[-1]) + len(part) >= SCREEN:
            screens.append(part)
        else:
            screens[-1] += f"\n{part}" if screens[-1] else part
