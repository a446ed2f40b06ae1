"""Whether a copy of a test, with other literals, reaches the fault that the test is there for.

It does where the faulty program answers otherwise than the reference, and where that could not be known from the test:
the reference's answer is none of the test's own, or a value is asked of a call that is written otherwise. Where the
faulty program stops before a question, only the answer counts: nobody can say what it stumbled over.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from manyturn.envs.software.agreement import agree, same
from manyturn.envs.software.checked_run import CheckedRun
from manyturn.envs.software.questions import BOTH, Questions
from manyturn.envs.software.syntax import parse


class Reach:
    """What is known of tests by who has read them.

    Args:
        asked: path -> questions of a file of tests.
        known: what the reference answers in the tests themselves.
    """

    def __init__(self, asked: Mapping[str, Questions], known: CheckedRun):
        self._asked = asked
        self._answers = dict[tuple[str, int], list[Any]]()  # of a test without parameters, to a question
        for test, answers in known.answers.items():
            path = test.partition("::")[0]
            for number, answer in answers if path in asked else ():
                sides = self._sides(path, number, answer)
                self._answers.setdefault((test.partition("[")[0], number), []).extend(sides)

    def reaches(self, test: str, text: bytes, told: Sequence[Any], given: Sequence[Any]) -> bool:
        """Whether answers to a copy show that it reaches the fault.

        Args:
            test: id without parameters of what was copied.
            text: of the copy's file.
            told, given: what the reference and the faulty program answer.
        """
        path = test.partition("::")[0]
        for at, (number, answer) in enumerate(told):
            sides, before = self._sides(path, number, answer), self._answers.get((test, number), ())
            new = [not any(same(side, one) for one in before) for side in sides]
            if at >= len(given) or given[at][0] != number:  # from here on it went another way
                return any(new)
            others = self._sides(path, number, given[at][1])
            if agree(self._asked[path], told[at], given[at]) or len(others) != len(sides):
                continue
            written = _written(text).get(number, ())
            known = {side for one in _written(self._asked[path].text).values() for side in one}
            new = [is_new or (place < len(written) and written[place] not in known) for place, is_new in enumerate(new)]
            if any(is_new and not same(*pair) for is_new, *pair in zip(new, sides, others, strict=True)):
                return True
        return False

    def _sides(self, path: str, number: int, answer: Any) -> list[Any]:
        both = self._asked[path].kinds.get(number) == BOTH and isinstance(answer, list)
        return list(answer) if both else [answer]


@lru_cache(64)
def _written(text: bytes) -> Mapping[int, Sequence[str]]:
    """Number of a question of values -> how each side of it is written.

    >>> _written(b"__ask__.both(1, (f( 2 )), (x)); __ask__.truth(2, (f(3)))")
    {1: ['f(2)', 'x']}
    """
    found: dict[int, Sequence[str]] = {}
    for node in ast.walk(parse(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="__ask__"), attr="value" | "both"),
                args=[ast.Constant(value=int(number)), *sides],
            ):
                found[number] = [ast.unparse(side) for side in sides]
    return found
