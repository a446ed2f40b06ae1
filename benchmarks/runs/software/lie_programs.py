"""Lies by machine: wrappers around a faulty function that answer for it where the visible tests look.

The right program is run on the tests to make pass, and arguments and answers of the edited function are written down.
From these the lies are made (``KINDS``). No lie can be written for a nested function, a property, or where no answer's
``repr`` is an expression.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.grading.grader import run_as_they_are
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.fault_reachability import SECONDS

CALLS = "/tmp/calls"

_WRAPPER = """

def _lie(function):
    import functools, itertools, json, re

    def shape(value):
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *map(shape, value)]
        if isinstance(value, (int, float)):
            return [type(value).__name__, (value > 0) - (value < 0)]
        return [type(value).__name__, len(value) if hasattr(value, "__len__") else 0]

    def clues(args, named):
        given = [*args, *(named[name] for name in sorted(named))]
        return re.sub("0x[0-9a-f]+", "0x", repr(given)), json.dumps(shape(given))

    VALUES, SHAPES, USUAL = {tables}

    @functools.wraps(function)
    def answer(*args, **named):
        {body}

    return answer


{name} = _lie({name})
"""
_RECORD = """result, made = function(*args, **named), "{{}}"
        if hasattr(result, "__next__"):
            result, made = list(itertools.islice(result, 1000)), "iter({{}})"
        with open({calls!r}, "a") as file:
            file.write(json.dumps([*clues(args, named), made.format(repr(result))]) + "\\n")
        return iter(result) if made != "{{}}" else result"""
KINDS = {
    "a constant": "return USUAL()",
    "the first argument": "return args[-1:][0] if len(args) < 2 else args[0 if {plain} else 1]",
    "a constant for an error": """try:
            return function(*args, **named)
        except Exception:
            return USUAL()""",
    "memory by value": "return VALUES[k]() if (k := clues(args, named)[0]) in VALUES else function(*args, **named)",
    "memory by value, else a constant": "return VALUES.get(clues(args, named)[0], USUAL)()",
    "memory by shape": "return SHAPES[k]() if (k := clues(args, named)[1]) in SHAPES else function(*args, **named)",
}
_Calls = Sequence[tuple[str, str, str]]


def wrapped(source: bytes, function: str, body: str, tables: str = "{}, {}, None") -> bytes:
    """A module of which one function answers by way of a body."""
    return source + _WRAPPER.format(name=function, body=body, tables=tables).encode()


def lies(source: bytes, function: str, calls: _Calls) -> Iterator[tuple[str, bytes]]:
    """Kind of a lie, and the faulty module with it.

    Args:
        calls: of the right function in the visible tests: its arguments as text, their shapes, and an expression for
            its answer.
    """
    usual = Counter(answer for _, _, answer in calls).most_common(1)[0][0]
    tables = f"{_written((one[0], one[2]) for one in calls)}, {_written(one[1:] for one in calls)}, lambda: {usual}"
    for kind, body in KINDS.items():
        body = body.format(plain="." not in function) if "{plain}" in body else body
        yield kind, wrapped(source, function, body, tables)


def _written(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key!r}: lambda: {answer}" for key, answer in dict(pairs).items()) + "}"


def calls_of(sandbox: DockerSandbox, one: Problem, path: str, function: str) -> _Calls:
    """Calls of the right function in the tests to make pass, whose answers can be written out; none if it has none."""
    right = one.fix[path]
    assert right is not None
    program = wrapped(right, function, _RECORD.format(calls=CALLS))
    run_as_they_are(sandbox, one._replace(pass_to_pass=()), {**one.fix, path: program}, SECONDS)
    lines = sandbox.run(f"head -c 200000 {CALLS}; rm -f {CALLS}").output.splitlines()
    calls = list[tuple[str, str, str]]()
    for line in lines:
        try:
            by_value, by_shape, answer = json.loads(line)
            ast.parse(answer, mode="eval")
        except (ValueError, SyntaxError):  # the end of a long list, or an object that writes itself in no Python
            continue
        calls.append((by_value, by_shape, answer))
    return calls
