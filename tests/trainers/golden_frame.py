"""Golden files: numbers from the authors' own code, and the frame in which our functions meet them.

Any folder of the layout will do, see ``needs_files``, and any subset of its files. A file joins the tests with one
function in a module ``golden_*.py`` beside this one: ``@golden("its_name")`` above a function that takes a case.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

torch.set_num_threads(1)
TOLERANCE = {"float64": {"rtol": 1e-6, "atol": 1e-6}, "float32": {"rtol": 3e-5, "atol": 1e-5}}
Case = dict[str, Any]
CHECKS: dict[str, Callable[[Case], None]] = {}


def golden(name: str) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    def add(check: Callable[[Case], None]) -> Callable[[Case], None]:
        CHECKS[name] = check
        return check

    return add


def close(case: Case, ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(
        np.asarray(ours), np.asarray(theirs), **TOLERANCE[case["params"].get("dtype", "float64")]
    )


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
