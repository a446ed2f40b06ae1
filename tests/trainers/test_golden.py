"""Numbers from the authors' own code, against our functions: see ``golden_frame`` and the modules beside it."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_frame import CHECKS, FOLDER, Case

# Files of the folder that belong to environments.
ELSEWHERE = ("webshop_", "tau_bench_", "tau2_bench_", "toolrl_")


def _cases() -> list[Any]:
    for module in sorted(Path(__file__).parent.glob("golden_*.py")):
        importlib.import_module(module.stem)
    found = []
    for name, check in CHECKS.items():
        path = FOLDER / f"{name}.json"
        if not path.is_file():
            reason = f"no golden file {name}.json: set MANYTURN_GOLDEN to the folder that has it"
            found.append(pytest.param(None, None, id=name, marks=pytest.mark.skip(reason=reason)))
            continue
        cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
        found.extend(pytest.param(check, case, id=f"{name}-{case['name']}") for case in cases)
    return found


@pytest.mark.parametrize(("check", "case"), _cases())
def test_golden(check: Callable[[Case], None], case: Case) -> None:
    check(case)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_no_golden_file_is_passed_over(name: str) -> None:
    _cases()
    assert name in CHECKS or name.startswith(ELSEWHERE), f"{name}.json has no test: write one, see golden_frame.py"
