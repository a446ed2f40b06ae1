"""Measurements and training runs in a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import ROOT, module_of


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
