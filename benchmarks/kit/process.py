"""Measurements and training runs in a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import ROOT, module_of
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_config


def measure_apart(script: str, *words: str, environment: dict[str, str] | None = None) -> Any:
    """Run a benchmark again in a fresh process with other arguments; the JSON of its last line.

    Args:
        script: the benchmark's ``__file__``.
        environment: variables that the process gets on top of this process's.

    Raises:
        SystemExit: the process failed; with its stderr.
    """
    command = [sys.executable, "-m", module_of(Path(script)), *words]
    environ = {**os.environ, **(environment or {})}
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{ended.stderr}")
    return json.loads(ended.stdout.splitlines()[-1])


def train_apart(words: Sequence[str], out: Path) -> dict[str, Any]:
    """Run ``manyturn train`` as a user does; the summary of the run.

    Args:
        words: its arguments, without ``--out``.
        out: the run's folder.
    """
    command = [sys.executable, "-m", "manyturn", "train", *words]
    command += [] if "--resume" in words else ["--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return json.loads((out / "summary.json").read_text())


def finish_recipe(recipe: str, seed: int, out: Path, words: Sequence[str] = (), **changes: Any) -> dict[str, Any]:
    """The summary of a recipe's run, which is made, or continued unless it is finished.

    Args:
        out: the run's folder.
        words: further arguments of ``manyturn train``.
        changes: the same as sections of a configuration.

    Raises:
        SystemExit: the folder holds another run.
    """
    begun, config = (out / "config.toml").is_file(), configure(load_recipe(recipe), {"seed": seed, **changes})
    if begun and read_config(out) != config:
        raise SystemExit(f"{out} holds a run of another configuration: name another RUN-FOLDER, or remove it")
    if not (out / "summary.json").is_file():
        new = ["--recipe", recipe, *words, "--seed", str(seed)]
        train_apart(["--resume", str(out)] if begun else new, out)
    return json.loads((out / "summary.json").read_text())


def words_of(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Sections of a configuration as words of the command line.

    >>> words_of({"steps": 3, "rollout": {"tasks": 8}})
    ['--steps', '3', '--rollout.tasks', '8']
    """
    words = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            words += words_of(value, f"{name}.")
        else:
            plain = str(value).lower() if isinstance(value, bool) else str(value)
            words += [f"--{name.replace('_', '-')}", plain]
    return words
