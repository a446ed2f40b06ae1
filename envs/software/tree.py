"""Trees of files as data: read from a workspace's archive, compared, and packed as an archive again.

Nothing here touches the file system: an agent made the files, with whatever links and names it liked.
"""

import base64
from collections.abc import Mapping
from typing import Any

from manyturn.containers.inside.archive import FILE, FOLDER, ArchivedPath, order, pack, unpack
from manyturn.containers.sandbox import Snapshot

Tree = Mapping[str, bytes]
Changes = Mapping[str, bytes | None]

_MOST_ENTRIES, _MOST_BYTES = 100_000, 1 << 30


def tree_of(snapshot: Snapshot) -> dict[str, bytes]:
    """Path -> content of a workspace's regular files; links and unprintable names are left out. Raises BadArchive."""
    entries = _entries(snapshot).values()
    return {entry.path: entry.content for entry in entries if entry.kind == FILE and entry.path.isprintable()}


def snapshot_of(tree: Tree) -> Snapshot:
    """The workspace that holds a tree's files and no more."""
    folders = {path[:place] for path in tree for place, sign in enumerate(path) if sign == "/"}
    entries = [ArchivedPath(folder, FOLDER) for folder in folders]
    entries += [ArchivedPath(path, FILE, content) for path, content in tree.items()]
    return Snapshot(*pack(sorted(entries, key=lambda entry: order(entry.path))))


def changes_between(before: Tree, after: Tree) -> dict[str, bytes | None]:
    """Path -> new content, None where the file is gone; what is the same is left out."""
    changed: dict[str, bytes | None] = {p: content for p, content in after.items() if before.get(p) != content}
    return changed | {path: None for path in before if path not in after}


def with_changes(tree: Tree, changes: Changes) -> dict[str, bytes]:
    """A tree after changes."""
    merged = {**tree, **changes}
    return {path: content for path, content in merged.items() if content is not None}


def difference(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Difference between two workspaces, links and empty folders included, as plain values for JSON."""
    old, new = _entries(before), _entries(after)
    changed = [entry for path, entry in new.items() if old.get(path) != entry]
    coded = [(e.path, e.kind, base64.b64encode(e.content).decode(), e.executable) for e in changed]
    return {"changed": coded, "gone": [path for path in old if path not in new]}


def patched(before: Snapshot, difference: Mapping[str, Any]) -> Snapshot:
    """The workspace ``after`` that a ``difference`` was taken to."""
    entries = _entries(before)
    for path in difference["gone"]:
        del entries[path]
    for path, kind, content, executable in difference["changed"]:
        entries[path] = ArchivedPath(path, kind, base64.b64decode(content), executable)
    return Snapshot(*pack(sorted(entries.values(), key=lambda entry: order(entry.path))))


def _entries(snapshot: Snapshot) -> dict[str, ArchivedPath]:
    return {entry.path: entry for entry in unpack(snapshot.archive, _MOST_ENTRIES, _MOST_BYTES)}
