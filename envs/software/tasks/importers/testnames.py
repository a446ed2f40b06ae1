"""The names that pytest gives to the tests of a file, found without running it."""

import ast
from collections import Counter
from collections.abc import Sequence
from typing import Any

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.tasks.importers.checkout_reader import DataError


def names_of_tests(text: str, where: object, parameters: Sequence[Sequence[Any]] | None = None) -> list[str]:
    """Names below the file, such as ``TestCase::test_it``, in the file's order.

    Inherited methods and parameters that are computed are not seen, apart from ``parameters``.

    Args:
        text: of a file of tests.
        where: the file, for errors.
        parameters: values of ``input_data`` and ``expected`` of every test that is a function, if they have such.

    Raises:
        DataError: the text is no Python, or has no tests.
    """
    try:
        body = parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DataError(f"{where} is no Python: fetch the files again") from None
    names: list[str] = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            methods = [inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)]
            names += [f"{node.name}::{method}" for method in methods if method.startswith("test")]
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            labels = [""] if parameters is None else [f"[{label}]" for label in _labels(parameters)]
            names += [node.name + label for label in labels]
    if not names:
        raise DataError(f"{where} has no tests: fetch the files again")
    return list(dict.fromkeys(names))


def _labels(parameters: Sequence[Sequence[Any]]) -> list[str]:
    """Pytest's names of parameter sets; equal names get a number after them."""
    labels = [f"{_label('input_data', a, i)}-{_label('expected', b, i)}" for i, (a, b) in enumerate(parameters)]
    often, seen = Counter(labels), Counter()
    names = []
    for label in labels:
        names.append(f"{label}{seen[label]}" if often[label] > 1 else label)
        seen[label] += 1
    return names


def _label(name: str, value: Any, place: int) -> str:
    if isinstance(value, str):
        return value.encode("unicode_escape").decode()
    return str(value) if value is None or isinstance(value, int | float) else f"{name}{place}"
