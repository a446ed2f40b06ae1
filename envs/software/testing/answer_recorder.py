"""Answers to questions, as plain data. The text of this file runs inside a sandbox, before ``grading_plugin``.

It stands alone: Python 3.8 and pytest are all it needs. What it says is no verdict: whoever speaks in its place has to
know what the tested code should compute.
"""

import hashlib
import json
import re
import signal
from collections.abc import Mapping, Sequence, Set

import pytest

_MOST_ANSWERS, _LONGEST, _DEEPEST, _MOST_PARTS = 200, 2000, 30, 20000
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")


class TooSlow(BaseException):
    """A question takes longer than it may."""


class AnswerRecorder:
    """Answers the questions of ``assertion_questions.py`` for one test after another.

    Attributes:
        answers: of the test at work: pairs of a question's number and its answer; what is beyond the first few hundred
            stands folded in one last pair, of number 0.
    """

    def __init__(self):
        self.begin()

    def begin(self):
        self.answers, self._count, self._rest = [], 0, hashlib.sha256()

    def report(self):
        """All answers of the test at work."""
        if self._count <= _MOST_ANSWERS:
            return self.answers
        return [*self.answers, [0, ["more", self._count, self._rest.hexdigest()]]]

    def late(self):
        """The test at work has taken too long."""
        self.answers.append([0, ["late"]])

    def value(self, number, value):
        self._note(number, _plain(value))

    def both(self, number, left, right):
        one, other = _plain(left), _plain(right)
        opaque = one[:1] == ["object"] if isinstance(one, list) else False
        self._note(number, [one, other, bool(left == right)] if opaque else [one, other])

    def truth(self, number, value):
        self._note(number, bool(value))

    def seen(self, number, value):
        self.value(number, value)
        return value

    def raises(self, number, *called, **named):
        """A block without what is called; otherwise it is called."""
        block = Raised(number, self._note)
        if called:
            with block:
                called[0](*called[1:], **named)
        return block

    def _note(self, number, answer):
        self._count += 1
        if self._count <= _MOST_ANSWERS:
            self.answers.append([number, answer])
        else:
            self._rest.update(json.dumps([number, _rounded(answer)]).encode("utf-8", "backslashreplace"))


class Raised:
    """A block in which something may be raised; also what tests look at afterwards."""

    def __init__(self, number, note):
        self._number, self._note = number, note
        self.type = self.value = self.exception = self.tb = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        if kind is not None and issubclass(kind, (TooSlow, pytest.skip.Exception, pytest.exit.Exception)):
            return False
        self._note(self._number, [one.__name__ for one in kind.__mro__[:-1]] if kind else [])
        self.type, self.value, self.exception, self.tb = kind, value, value, tb
        return True

    def match(self, pattern):
        return True

    @property
    def typename(self):
        return self.type.__name__ if self.type else ""


def limited(seconds):
    """A hook that ends what runs after so many seconds of the processor's time; 0 ends the limit."""

    def ring(number, frame):
        raise TooSlow

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _rounded(answer):
    """An answer to be folded up with others: what a processor may round differently is the same."""
    if not isinstance(answer, list):
        return answer
    if len(answer) != 2 or answer[0] != "float":
        return [_rounded(part) for part in answer]
    value = float(answer[1])
    value = float(f"{value:.5g}") if abs(value) > 1e-9 else 0.0
    return int(value) if value.is_integer() else repr(value)


def _plain(value):
    """A value as JSON that tells kinds apart as ``==`` does."""
    try:
        return _Plain().of(value, 0)
    except RecursionError:
        return ["deep"]


class _Plain:
    """Turns one value into plain data, as far as it is not too large."""

    def __init__(self):
        self._parts = 0

    def of(self, value, depth):
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            return ["deep"]
        if value is None or value is True or value is False:
            return value
        for kind, letter in _SCALARS:
            if isinstance(value, kind):
                return letter(value)
        if isinstance(value, Mapping):
            pairs = [[self.of(key, depth + 1), self.of(one, depth + 1)] for key, one in value.items()]
            return ["dict", *sorted(pairs, key=json.dumps)]
        if isinstance(value, Set):
            return ["set", *sorted((self.of(one, depth + 1) for one in value), key=json.dumps)]
        for kind in (list, tuple, Sequence):
            if isinstance(value, kind):
                return [kind.__name__, *(self.of(one, depth + 1) for one in value)]
        return ["object", type(value).__name__, _short(_ADDRESS.sub("0x", repr(value)))]


def _short(text):
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= _LONGEST:
        return text
    return f"{text[:100]}...{len(text)} {hashlib.sha256(text.encode()).hexdigest()}"


def _whole(value):
    number = int.__index__(value)
    return number if abs(number) < 1 << 62 else ["int", _short(hex(number))]


_SCALARS = (
    (int, _whole),
    (float, lambda value: ["float", float.__repr__(value)]),
    (complex, lambda value: ["complex", ["float", repr(value.real)], ["float", repr(value.imag)]]),
    (str, lambda value: _short(str.__str__(value))),
    ((bytes, bytearray), lambda value: ["bytes", _short(bytes(value).hex())]),
)
