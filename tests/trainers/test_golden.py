"""Numbers from the authors' own code, against our functions: see ``golden_frame`` and the modules beside it."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from golden_frame import CHECKS, Case
from needs_files import COMMITTED, GOLDEN, golden_file, golden_path

pytestmark = pytest.mark.versions

# Files of the folder that belong to environments.
ELSEWHERE = ("webshop_", "tau_bench_", "tau2_bench_")
RETIRED = {"toolrl_reward"}  # a wrapper that was removed; folders of others still hold its numbers


def _cases() -> list[Any]:
    for module in sorted(Path(__file__).parent.glob("golden_*.py")):
        importlib.import_module(module.stem)
    found = []
    for name in CHECKS:
        cases = golden_file(name)["cases"] if golden_path(name) else [{"name": "missing"}]
        found.extend(pytest.param(name, case, id=f"{name}-{case['name']}") for case in cases)
    return found


@pytest.mark.parametrize(("name", "case"), _cases())
def test_golden(name: str, case: Case) -> None:
    golden_file(name)
    CHECKS[name](case)


def test_no_golden_file_is_passed_over() -> None:
    found = {path.stem for folder in GOLDEN for path in folder.glob("*.json")}
    names = {name for name in found if not name.startswith(ELSEWHERE)}
    assert names - RETIRED <= CHECKS.keys(), "a file has no test: write one, see golden_frame.py"


def test_a_plain_clone_has_the_numbers_of_every_algorithm() -> None:
    assert {path.stem for path in COMMITTED.glob("*.json")} >= CHECKS.keys()
