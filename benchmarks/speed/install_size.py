"""Megabytes that an installation of manyturn takes, without an extra and with the extra train, by package.

    python -m benchmarks.speed.install_size       at once; in an environment in which manyturn is installed

Sizes are those of the files that each installed package lists, and of our own folders, without compiled bytecode.
"""

import argparse
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.kit.provenance import RESULTS, ROOT, origin, write

OUT = RESULTS / "install_size.json"
OURS = ("manyturn", "envs", "agents", "trainers", "containers")


def needed(name: str, extras: Iterable[str] = ()) -> set[str]:
    """Names of all packages that one needs, itself included, as they are installed here.

    Raises:
        PackageNotFoundError: one of them is not installed.
    """
    waiting, names, seen = [(name, frozenset(extras))], set[str](), set[tuple[str, frozenset[str]]]()
    while waiting:
        package, wishes = waiting.pop()
        if (package, wishes) in seen:
            continue
        seen.add((package, wishes))
        names.add(canonicalize_name(package))
        for line in distribution(package).requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wishes, "")):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return names


def megabytes(package: Distribution) -> float:
    """Size of the files of a package."""
    paths = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def own_megabytes() -> float:
    """Size of our own files."""
    paths = (path for folder in OURS for path in (ROOT / folder).rglob("*"))
    files = {path.resolve() for path in paths if path.is_file() and "__pycache__" not in path.parts}
    return sum(path.stat().st_size for path in files) / 1e6


def sizes(extras: Iterable[str]) -> dict[str, Any]:
    """Size of an installation, and of its largest packages."""
    by_name = {name: megabytes(distribution(name)) for name in needed("manyturn", extras) if name != "manyturn"}
    by_name["manyturn"] = own_megabytes()
    largest = sorted(by_name, key=lambda name: -by_name[name])[:6]
    return {
        "packages": len(by_name),
        "megabytes": round(sum(by_name.values())),
        "largest": {name: round(by_name[name], 1) for name in largest},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    about = origin(chosen.out, ("numpy", "pyarrow", "gymnasium", "torch"))
    write(chosen.out, about, {"without extras": sizes(()), "train": sizes(("train",))})


if __name__ == "__main__":
    main()
