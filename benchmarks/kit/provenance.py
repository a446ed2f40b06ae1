"""Provenance of a figure: command, commit, date, machine, versions.

Anybody can make the figures in ``results/`` again. So a tree that differs from its commit is refused before anything is
measured, and once more before a result is written. Other files may be written from any tree; their commit then says
``-dirty``. A copy without history, for a machine without network, has a stamp that names its commit.
"""

import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
STAMP = ROOT / "gpu-kit" / "commit.json"
# What figures depend on. Results themselves may be new.
_CODE = ("manyturn", "envs", "agents", "trainers", "containers", "benchmarks", "tests/faults", ":!benchmarks/results")


def commit() -> str:
    """The checkout's commit, with ``-dirty`` where code differs from it; "unknown" without history and stamp."""
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return _stamped()
    return f"{head}-dirty" if _git("status", "--porcelain", "--", *_CODE) else head


def stamp() -> str:
    """Write down which commit the code is of, for a copy without history; returns the commit.

    Raises:
        SystemExit: the code is of no commit.
    """
    made_from = commit()
    if made_from.endswith("-dirty") or made_from == "unknown":
        raise SystemExit(f"the tree is {made_from}: commit first, so that figures of its copy are of a commit")
    files = {name: _digest(ROOT / name) for name in _git("ls-files", "--", *_CODE).splitlines()}
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text(json.dumps({"commit": made_from, "files": files}) + "\n")
    return made_from


def _stamped() -> str:
    if not STAMP.is_file():
        return "unknown"
    stamped = json.loads(STAMP.read_text())
    there = {name for name in stamped["files"] if (ROOT / name).exists()}
    same = there == set(stamped["files"]) and all(_digest(ROOT / name) == stamped["files"][name] for name in there)
    more = {str(path.relative_to(ROOT)) for path in (ROOT / "benchmarks").rglob("*.py")} - there
    return stamped["commit"] if same and not more else f"{stamped['commit']}-dirty"


def _digest(path: Path) -> str:
    """SHA-256 of a file's content, or of a link's target."""
    content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # a bare machine has no git either
        return ""
    return done.stdout.strip()


def machine() -> str:
    """The processor's name, cores and system."""
    model, cpuinfo = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, {platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def origin(out: Path, packages: Sequence[str] = (), **folders: Path | None) -> dict[str, Any]:
    """Provenance of a result; to be taken before anything is measured.

    Args:
        out: the file that the result goes to.
        packages: that the figures depend on; those that are absent are left out.
        folders: arguments of the command line that are places of the user's own: ``run_folder`` is shown as RUN-FOLDER.

    Raises:
        SystemExit: the file is in ``results/``, and its figures could not be had again from a commit.
    """
    made_from = commit()
    refuse(out, made_from)
    return {
        "command": _command(sys.argv, folders),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": made_from,
        "machine": machine(),
        "versions": {"python": platform.python_version(), **versions(packages)},
    }


def _command(words: Sequence[str], folders: Mapping[str, Path | None]) -> str:
    """The command that makes a result again.

    >>> words = [str(ROOT / "benchmarks/credit/gra_ablation.py"), "/tmp/x", "--recipe", "desk-tiny", "--out", "y.json"]
    >>> _command(words, {"run_folder": Path("/tmp/x")})
    'python -m benchmarks.credit.gra_ablation RUN-FOLDER --recipe desk-tiny'
    """
    names = {str(path): name.upper().replace("_", "-") for name, path in folders.items() if path}
    script = Path(words[0]).resolve().relative_to(ROOT)
    in_room = script.parts[0] == "benchmarks" and len(script.parts) > 2
    command = ["python", "-m", module_of(script)] if in_room else ["python", str(script)]
    skipped = False
    for word in words[1:]:
        if not skipped and word not in ("--out", "--json"):
            command.append(names.get(word, word))
        skipped = word in ("--out", "--json")
    return shlex.join(command)


def module_of(script: Path) -> str:
    """The module that ``python -m`` runs for a file of this checkout.

    >>> module_of(Path("benchmarks/speed/learner/__main__.py"))
    'benchmarks.speed.learner'
    """
    path = script.resolve().relative_to(ROOT) if script.is_absolute() else script
    return ".".join(path.with_suffix("").parts).removesuffix(".__main__")


def refuse(out: Path, made_from: str) -> None:
    """Raise SystemExit if figures of this commit do not belong into the file."""
    if out.resolve().is_relative_to(RESULTS) and (made_from.endswith("-dirty") or made_from == "unknown"):
        raise SystemExit(
            f"results are made from a commit, and this tree is {made_from}: commit first, or write to another file "
            f"than {out.resolve().relative_to(ROOT)}"
        )


def same_code(made_from: str) -> bool:
    """True if the code that is here now, committed and unedited, is that of a commit."""
    now = commit()
    if "-dirty" in made_from + now or not _git("rev-parse", "--verify", "--quiet", f"{made_from}^{{commit}}"):
        return False
    return not _git("diff", "--name-only", made_from, "HEAD", "--", *_CODE)


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Version of each package that is installed."""
    installed = {}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def write(out: Path, about: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Write a result with its provenance from ``origin``. Raises SystemExit if code has changed since."""
    before, now = about["commit"], commit()
    refuse(out, now)
    if now != before and _git("diff", "--name-only", before.removesuffix("-dirty"), "HEAD", "--", *_CODE):
        raise SystemExit(
            f"not written: the measurement began at {before}, and code has changed up to {now}: run it again"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**about, **result}, indent=1) + "\n")
    print(f"written to {out}")
