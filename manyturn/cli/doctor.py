"""``manyturn doctor``: what this machine and this installation can do, and how to fix what is missing."""

import importlib.metadata
import operator
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from manyturn.cli.doctor_finding import Diagnosis
from manyturn.cli.hardware_checks import folders, hardware, hub
from manyturn.envs.users.endpoint.protocols.registry import PROTOCOLS

_EXTRAS = {
    "train": "training, and models as policies",
    "tensorboard": "the logger tensorboard",
    "trackio": "the logger trackio",
    "wandb": "the logger wandb",
    "gguf": "models in GGUF files",
    "web": "manyturn view, and shops and pages in a browser",
    "miniwob": "MiniWoB++",
    "scienceworld": "ScienceWorld, with a Java runtime",
    "textworld": "TextWorld",
    "textworld-express": "TextWorld-Express, with a Java runtime",
    "docker": "containers, for environments that run code",
    "mcp": "tools of MCP servers",
    "openenv": "environments on a server of OpenEnv",
    "reasoning-gym": "datasets of reasoning-gym",
    "textarena": "games of textarena",
    "verifiers": "tasksets of verifiers",
    "serve": "manyturn serve",
    "hosts": "manyturn host, and environments on other machines",
    "ray": "hosts that Ray places",
    "docs": "these pages as a site",
    "bfcl": "the mathematics of BFCL's tools",
    "webshop": "WebShop's nouns",
    "test": "the tests of manyturn itself",
}
_MISSING, _ABSENT = " is missing", "not installed"
_COMPARE = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt}
_COMPARE |= {"<": operator.lt}
Version = Callable[[str], str]


def examine(folder: Path = Path(".")) -> list[Diagnosis]:
    """Everything that was found, for a person who would work in ``folder``."""
    try:
        about = importlib.metadata.metadata("manyturn")
    except importlib.metadata.PackageNotFoundError:
        fix = f"in its folder, run {sys.executable} -m pip install --editable ."
        return [Diagnosis("problem", "manyturn", f"is not installed, so its needs are unknown: {fix}")]
    requires = importlib.metadata.requires("manyturn") or []
    installed = [*dependencies(requires), *extras(requires)]
    if any(diagnosis.text.startswith(_ABSENT) for diagnosis in installed):
        installed.append(Diagnosis("ok", "extras", f"{_pip([shlex.quote('manyturn[NAME]')])} installs one by its name"))
    return [python(about["Requires-Python"]), *installed, *hardware(), *engines(installed), *folders(folder), hub()]


def print_findings(findings: Iterable[Diagnosis], console: Console) -> bool:
    """Print a line for each; returns whether there was no problem."""
    findings, styles = list(findings), {"ok": "green", "note": "yellow", "problem": "bold red"}
    width = max(len(finding.subject) for finding in findings)
    for diagnosis in findings:
        line = Text.assemble(
            (f"{diagnosis.status:8}", styles[diagnosis.status]), f"{diagnosis.subject:{width}}  {diagnosis.text}"
        )
        console.print(line, soft_wrap=True)
    return all(finding.status != "problem" for finding in findings)


def within(version: str, ranges: str) -> bool:
    """True if a version lies in ranges such as ``>=1.2,<1.5``.

    The packaging library knows more about versions, but a doctor has to work where libraries are missing.

    >>> within("2.11.0+cpu", ">=2.11,<2.16"), within("2.16.0", ">=2.11,<2.16")
    (True, False)
    """
    for clause in filter(None, (part.strip() for part in ranges.split(","))):
        sign = clause[:2] if clause[:2] in _COMPARE else clause[:1]
        if not _COMPARE[sign](_release(version), _release(clause[len(sign) :])):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\s*(\d+(?:\.\d+)*)", version)
    if numbers is None:
        raise ValueError(f"{version!r} is no version")
    parts = [int(part) for part in numbers[1].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()  # 2 and 2.0 are one version
    return tuple(parts)


def _needs(requires: Iterable[str], extra: str | None) -> Iterator[tuple[str, str]]:
    """Names and ranges of what is needed always, or for an extra."""
    for line in requires:
        match = re.match(r"([\w.-]+)(?:\[.*?\])?\s*\(?([^;)]*)\)?\s*(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?", line)
        if match is not None and match[3] == extra:
            yield match[1], ",".join(sorted(match[2].strip().split(","), reverse=True))  # lower bound first


def python(ranges: str | None) -> Diagnosis:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if ranges and not within(version, ranges):
        return Diagnosis(
            "problem", "python", f"{version} is outside {ranges}: make a new environment with another Python"
        )
    return Diagnosis("ok", "python", f"{version} ({sys.executable})")


def _look(needs: Iterable[tuple[str, str]], version: Version) -> tuple[list[str], list[str], list[str]]:
    """Packages that are fine, those that are not (in words), and the ones that pip should install."""
    good, bad, requirements = [], [], []
    for name, ranges in needs:
        try:
            there = version(name)
        except importlib.metadata.PackageNotFoundError:
            bad.append(f"{name}{_MISSING}")
        else:
            if within(there, ranges):
                good.append(f"{name} {there}")
                continue
            bad.append(f"{name} {there} is outside {ranges}")
        requirements.append(shlex.quote(f"{name}{ranges}"))
    return good, bad, requirements


def dependencies(requires: Iterable[str], version: Version = importlib.metadata.version) -> list[Diagnosis]:
    """Findings about the base dependencies."""
    diagnoses = []
    for need in _needs(requires, None):
        good, bad, requirements = _look([need], version)
        diagnoses += [Diagnosis("ok", line.split()[0], f"{line.split()[1]} ({need[1]})") for line in good]
        diagnoses += [Diagnosis("problem", need[0], f"{line}: {_pip(requirements)}") for line in bad]
    return diagnoses


def extras(requires: Iterable[str], version: Version = importlib.metadata.version) -> list[Diagnosis]:
    """Findings about the extras."""
    requires, diagnoses = list(requires), []
    for extra in dict.fromkeys(re.findall(r"extra\s*==\s*['\"]([\w-]+)['\"]", "\n".join(requires))):
        good, bad, requirements = _look(_needs(requires, extra), version)
        use = f" ({_EXTRAS[extra]})" if extra in _EXTRAS else ""
        text = f"{'; '.join(bad)}{use}: {_pip(requirements)}" if bad else f"{', '.join(good)}{use}"
        if len(good) < len(bad) and all(line.endswith(_MISSING) for line in bad):  # the rest came with others
            text = f"{_ABSENT}{use}"
        diagnoses.append(Diagnosis("note" if bad else "ok", f"extra {extra}", text))
    return diagnoses


def _pip(requirements: Iterable[str]) -> str:
    return f"{shlex.quote(sys.executable)} -m pip install {' '.join(requirements)}"


def engines(installed: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Engines that can compute replies here, given the findings about extras."""
    complete = {diagnosis.subject.removeprefix("extra ") for diagnosis in installed if diagnosis.status == "ok"}
    diagnoses = []
    for name, needs, use in (
        ("scripted", (), "the policies expert and random"),
        *((name, (), f"{name}:MODEL, any endpoint of {spoken.title}") for name, spoken in PROTOCOLS.items()),
        ("transformers", ("train",), "tiny and Hugging Face models, in this process"),
        ("gguf", ("train", "gguf"), "models in GGUF files, by way of transformers"),
    ):
        missing = [needed for needed in needs if needed not in complete]
        if (spoken := PROTOCOLS.get(name)) is not None and not os.environ.get(spoken.address):
            use += f"; set {spoken.address} to its address, such as {spoken.example}"
        text = f"cannot be used: see extra {' and extra '.join(missing)}" if missing else use
        diagnoses.append(Diagnosis("note" if missing else "ok", f"engine {name}", text))
    if "train" in complete:
        diagnoses += _vllm()
    return diagnoses


def _vllm() -> list[Diagnosis]:
    """The engines whose package is vLLM, which is no extra: its builds need other versions than we do."""
    from manyturn.agents.engine.vllm.versions import installed
    from manyturn.envs.contract.options.options import ConfigError

    try:
        here = Diagnosis("ok", "engine vllm", f"vLLM {installed()}, in processes of its own next to the learner")
    except ConfigError as error:
        here = Diagnosis("note", "engine vllm", str(error))
    return [here, Diagnosis("ok", "engine vllm-server", "servers of vLLM's, which are named in engine.addresses")]
