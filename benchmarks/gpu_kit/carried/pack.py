"""Fills a folder with what a GPU machine without network needs next to the code.

Its wheels are those that our extras need and the machine has not; ``machine-packages.txt`` says what it has. With them
go rows of Household and the CPU's numbers, so that no minute of the GPU is spent on either, and a stamp that says which
commit the code is of. All of it and the code are carried at once, in at most 64 MiB.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchmarks.kit import provenance
from benchmarks.kit.provenance import ROOT

MOST, _MARGIN = 64 * 2**20, 2**20  # bytes; what folders themselves take
PYTHON, EXTRAS = "3.12", ("train",)
PRESENT = Path(__file__).with_name("machine-packages.txt")
_TESTS = (Requirement("pytest>=8.3,<10"),)
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 17)] + ["manylinux2014_x86_64"]


def environment() -> dict[str, str]:
    """Values of the markers of requirements on the GPU machine."""
    return {
        "python_version": PYTHON,
        "python_full_version": f"{PYTHON}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }


def present_from(lines: Iterable[str]) -> dict[str, Version | None]:
    """Names and versions of a freeze; None where a line has no version."""
    present: dict[str, Version | None] = {}
    for line in lines:
        name, _, version = line.strip().partition("==")
        if matched := re.match(r"[A-Za-z0-9][\w.-]*", name):
            present[canonicalize_name(matched[0])] = Version(version.split("+")[0]) if version else None
    return present


def needed(project: Mapping[str, Any], extras: Sequence[str]) -> list[Requirement]:
    """Requirements of a project with some of its extras."""
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


def missing(
    requirements: Sequence[Requirement], present: Mapping[str, Version | None], folder: Path, more: Sequence[str] = ()
) -> list[Path]:
    """Fetch a wheel for each requirement that the machine does not meet, and for what these need in turn.

    Args:
        folder: the wheels go there.
        more: options of pip, such as where to look.

    Raises:
        SystemExit: the machine has a version that does not do, of a package that is too large to carry.
    """
    queue, fetched = list(requirements), dict[str, Path]()
    while queue:
        requirement = queue.pop(0)
        name = canonicalize_name(requirement.name)
        if requirement.marker and not _applies(requirement):
            continue
        if name in fetched or _meets(present, name, requirement):
            continue
        if name in ("torch", "transformers"):
            raise SystemExit(
                f"the machine has {name} {present.get(name)}, and {requirement} is needed: update it there"
            )
        fetched[name] = _fetch(requirement, folder, more)
        queue += [need for need in _requires(fetched[name]) if need.marker is None or _applies(need, requirement)]
    return list(fetched.values())


def _applies(requirement: Requirement, parent: Requirement | None = None) -> bool:
    assert requirement.marker is not None
    extras = ["", *(parent.extras if parent else ())]
    return any(requirement.marker.evaluate({**environment(), "extra": extra}) for extra in extras)


def _meets(present: Mapping[str, Version | None], name: str, requirement: Requirement) -> bool:
    if name not in present:
        return False
    version = present[name]
    return version is None or requirement.specifier.contains(version, prereleases=True)


def _fetch(requirement: Requirement, folder: Path, more: Sequence[str]) -> Path:
    """One wheel for the GPU machine, without what it needs."""
    with tempfile.TemporaryDirectory() as aside:
        platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
        specifier = f"{requirement.name}{requirement.specifier}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *more]
        command += ["--python-version", PYTHON, "--implementation", "cp", *platforms, "--dest", aside, specifier]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(
                f"pip finds no wheel of {specifier} for Python {PYTHON} on Linux: {done.stderr.strip()[-400:]}"
            )
        [wheel] = Path(aside).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, folder / wheel.name))


def _requires(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        metadata = Parser().parsestr(content.read(name).decode())
    return [Requirement(line) for line in metadata.get_all("Requires-Dist") or ()]


def code_bytes() -> int:
    """Bytes of the code: all files that git lists."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sum((ROOT / name).lstat().st_size for name in listed.splitlines())


def check_size(folder: Path) -> None:
    """Say how large everything is. Raises SystemExit if it cannot be carried at once."""
    code, kit = code_bytes(), sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder.name}: {kit / 2**20:.1f} MiB, with the code {(kit + code) / 2**20:.1f}")
    if kit + code > MOST - _MARGIN:
        raise SystemExit(f"that is more than the {MOST / 2**20:.0f} MiB which are carried at once: see {PRESENT.name}")


def main(folder: Path) -> int:
    """Fill the folder anew; rows that came back from the machine stay in it."""
    import torch

    from benchmarks.gpu_kit.carried import household_rows, reference

    torch.set_num_threads(1)  # rows and numbers have the same bits each time, and what depends on them still counts
    print(f"{provenance.STAMP.name}: {provenance.stamp()}")
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements = [*needed(project["project"], EXTRAS), *_TESTS]
    for wheel in missing(requirements, present_from(PRESENT.read_text().splitlines()), wheels):
        print(wheel.name)
    for toy in (True, False):
        for write in (household_rows.write, reference.write):
            path = write(folder, toy)
            print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB", flush=True)
    check_size(folder)
    return 0
