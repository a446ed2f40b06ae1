"""Limits on this container as seen from inside; empty where kernel and runtime say nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

_CGROUPS = "/sys/fs/cgroup"


def facts(places: Iterable[str]) -> dict[str, Any]:
    """Limits and rights of this process, and the room in places: bytes, files and mount flags of each."""
    status = dict(line.split(":", 1) for line in _first("/proc/self/status").splitlines())
    room = {}
    for place in places:
        stat = os.statvfs(place)
        room[place] = {"bytes": stat.f_blocks * stat.f_frsize, "files": stat.f_files, "flags": stat.f_flag}
    return {
        "pid": os.getpid(),
        "capabilities": status.get("CapPrm", "").strip(),
        "no_new_privileges": status.get("NoNewPrivs", "").strip(),
        "seccomp": status.get("Seccomp", "").strip(),
        "root_read_only": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        "memory": _first(f"{_CGROUPS}/memory.max", f"{_CGROUPS}/memory/memory.limit_in_bytes"),
        "processes": _first(f"{_CGROUPS}/pids.max", f"{_CGROUPS}/pids/pids.max"),
        "routes": max(len(_first("/proc/net/route").splitlines()) - 1, 0),
        "room": room,
    }


def oom_kills() -> int:
    """Number of processes of the container that were killed for lack of memory; 0 where that cannot be seen."""
    events = _first(f"{_CGROUPS}/memory.events", f"{_CGROUPS}/memory/memory.oom_control")
    counts = dict(line.split() for line in events.splitlines())
    return int(counts.get("oom_kill", 0))


def _first(*paths: str) -> str:
    for path in paths:
        try:
            with open(path) as file:
                return file.read().strip()
        except OSError:
            continue
    return ""
