"""Whether a copy of a test, with other literals, reaches the fault that the test is there for.

It does where the faulty program answers otherwise than the reference, and where that could not be known from the test:
the reference's answer is none of the test's own, or a value is asked of a call that is written otherwise. Where the
faulty program stops before a question, only the answer counts: nobody can say what it stumbled over.

Of a truth value there is only one other, which whoever knows the test's own input can give for all else. It counts
where the reference answers both on other inputs, and there what the test's own is: then neither a constant nor this
memory is right.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
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
        self._turned = set[tuple[str, int]]()  # questions of which a copy has the other truth value
        self._answers = dict[tuple[str, int], list[Any]]()  # of a test without parameters, to a question
        for test, answers in known.answers.items():
            path = test.partition("::")[0]
            for number, answer in answers if path in asked else ():
                sides = self._sides(path, number, answer)
                self._answers.setdefault((test.partition("[")[0], number), []).extend(sides)

    def note(self, test: str, told: Sequence[Any]) -> None:
        """The reference's answers to a copy that is asked in any case.

        Args:
            test: id without parameters of what was copied.
        """
        path = test.partition("::")[0]
        for number, answer in told:
            before = self._answers.get((test, number), ())
            if any(isinstance(one, bool) and one not in before for one in self._sides(path, number, answer)):
                self._turned.add((test, number))

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
                pairs = [(side, one, False) for side, one in zip(sides, new, strict=True)]
                return any(self._counts(*pair, (path, test, number, place), text) for place, pair in enumerate(pairs))
            others = self._sides(path, number, given[at][1])
            if agree(self._asked[path], told[at], given[at]) or len(others) != len(sides):
                continue
            for place, (side, other, one) in enumerate(zip(sides, others, new, strict=True)):
                if not same(side, other) and self._counts(side, one, True, (path, test, number, place), text):
                    return True
        return False

    def _counts(self, side: Any, is_new: bool, answered: bool, where: tuple[str, str, int, int], text: bytes) -> bool:
        """Whether nobody who knows the test alone can give this answer of the reference.

        Args:
            is_new: it is none of the test's own.
            answered: the faulty program came to the question.
            where: path, test, and the question's number and side.
        """
        path, test, number, place = where
        written = _written(text).get(number, ())
        otherwise = place < len(written) and written[place] not in _all_written(self._asked[path].text)
        if isinstance(side, bool):
            return (test, number) in self._turned and not is_new and otherwise
        return is_new or (answered and otherwise)

    def _sides(self, path: str, number: int, answer: Any) -> list[Any]:
        both = self._asked[path].kinds.get(number) == BOTH and isinstance(answer, list)
        return list(answer) if both else [answer]


@lru_cache(64)
def _written(text: bytes) -> Mapping[int, Sequence[str]]:
    """Number of a question of values -> how each side of it is written, with what its names are made of.

    >>> _written(b"def test():\n    x = f( 1 )\n    __ask__.both(1, (f( 2 )), (x))\n    __ask__.truth(2, (f(3)))")
    {1: ['f(2)', 'x; x = f(1)'], 2: ['f(3)']}
    """
    found: dict[int, Sequence[str]] = {}
    for function in ast.walk(parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        made = list(_made(function))
        for node in ast.walk(function):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="__ask__"), attr="value" | "both" | "truth"),
                    args=[ast.Constant(value=int(number)), *sides],
                ):
                    found[number] = [_expanded(side, made) for side in sides]
    return found


@lru_cache(64)
def _all_written(text: bytes) -> frozenset[str]:
    return frozenset(side for sides in _written(text).values() for side in sides)


def _made(function: ast.AST) -> Iterator[tuple[set[str], ast.AST, set[str]]]:
    """What gives values to names in a function: the names, what is written there, and names that it uses."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                yield _names(target), node, _names(node)
            case ast.For(target=target, iter=values) | ast.comprehension(target=target, iter=values):
                yield _names(target), values, _names(values)
            case ast.withitem(context_expr=value, optional_vars=ast.AST() as target):
                yield _names(target), value, _names(value)
            case ast.Expr(value=ast.Call() as call) if "__ask__" not in _names(call):
                yield _names(call), call, _names(call)  # which may change what it is given


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _expanded(side: ast.AST, made: Sequence[tuple[set[str], ast.AST, set[str]]]) -> str:
    names, left, texts = _names(side), list(made), [ast.unparse(side)]
    while used := [one for one in left if one[0] & names]:
        left = [one for one in left if one not in used]
        texts += [ast.unparse(node) for _, node, _ in used]
        names = names.union(*[more for _, _, more in used])
    return "; ".join(texts)
