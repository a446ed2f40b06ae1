"""The interfaces of one task in one state, and what calls of them answer."""

import ast
import copy
import decimal
import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from manyturn.envs.benchmarks.bfcl.package_data import interface
from manyturn.envs.contract.python_parser import parse_expression
from manyturn.envs.tools.toolset import ToolFault

STATELESS = frozenset({"MathAPI"})
MOST = {"precision": 1000, "exponent": 1000, "decimal_places": 1000}  # of arguments that could take all memory or time


class GoldCall(NamedTuple):
    """A call of the reference solution, such as ``sort('final_report.pdf')``."""

    name: str
    places: Sequence[Any]
    named: Mapping[str, Any]


def gold_call(text: str) -> GoldCall:
    """Read a call whose arguments are literals. Raises ValueError for anything else."""
    node = parse_expression(text.strip())
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{text!r} is no call")
    named = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in node.keywords}
    return GoldCall(node.func.id, [ast.literal_eval(one) for one in node.args], named)


class World:
    """Instances of a task's interfaces.

    Args:
        entry: the task as the package has it.
        long_context: whether the interfaces are filled up with noise.
    """

    def __init__(self, entry: Mapping[str, Any], long_context: bool):
        self.instances: dict[str, Any] = {}
        self._methods: dict[str, Any] = {}
        for name in entry["involved_classes"]:
            with _own_precision():
                self.instances[name] = instance = interface(name)()
                if name not in STATELESS:
                    scenario = copy.deepcopy(entry["initial_config"].get(name, {}))
                    instance._load_scenario(scenario, long_context=long_context)
            for method, bound in inspect.getmembers(instance, inspect.ismethod):
                if not method.startswith("_"):
                    self._methods[method] = bound

    def call(self, name: str, /, *places: Any, **named: Any) -> str:
        """The answer to a call, errors too, in the original's words."""
        for argument, most in MOST.items():
            given = named.get(argument)
            if isinstance(given, int | float) and abs(given) > most:
                return f"Error during execution: {argument} is at most {most}"
        try:
            with _own_precision():
                return _text(self._methods[name](*places, **named))
        except MemoryError as error:
            raise ToolFault(f"{name} ran out of memory") from error
        except Exception as error:  # the interfaces are not ours, and the original answers whatever they raise
            return f"Error during execution: {error}"

    def do(self, gold: GoldCall) -> str:
        return self.call(gold.name, *gold.places, **gold.named)

    def arguments(self, gold: GoldCall) -> dict[str, Any]:
        """A gold call's arguments, all by name."""
        names = inspect.signature(self._methods[gold.name]).parameters
        return dict(zip(names, gold.places, strict=False)) | dict(gold.named)

    def same(self, other: "World") -> bool:
        """True if all public attributes of all interfaces are equal."""
        for name, theirs in other.instances.items():
            mine = self.instances[name]
            for attribute, value in vars(theirs).items():
                if not attribute.startswith("_") and getattr(mine, attribute) != value:
                    return False
        return True


def all_among(expected: Sequence[str], results: Sequence[str]) -> bool:
    """True if every expected result is among the results, as often as it is expected."""
    rest = list(results)
    for one in expected:
        if one not in rest:
            return False
        rest.remove(one)
    return True


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if type(result) is dict:
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
    return str(result)


@contextmanager
def _own_precision() -> Iterator[None]:
    """Keep the precision that the mathematical interface sets from reaching anything else in the process."""
    import mpmath

    digits = mpmath.mp.dps
    try:
        with decimal.localcontext():
            yield
    finally:
        mpmath.mp.dps = digits if math.isfinite(digits) else 15
