"""A fault counts as reached only if nobody who knows the test by some of its literals is right on all copies."""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.grading.fault_detection import Seen, _proof
from manyturn.envs.software.grading.literal_fingerprints import Clue, clues

CLUES: list[Clue] = [("at", 0, "7"), ("at", 1, "8"), ("often", 1, "7"), ("list", 0, "3")]
ALL = frozenset(CLUES)
OWN, OTHERS = "own", ("other", "another")
WRONG, STOPS, RIGHT = "wrong", "stops", "right"


def seen(number: int, answer: str, faulty: str, kept: frozenset[Clue]) -> Seen:
    return Seen(f"copy {number}", answer, answer != OWN, kept, [faulty == WRONG], [faulty == STOPS])


FAULTY, SHARED = st.sampled_from([WRONG, STOPS, RIGHT]), st.frozensets(st.sampled_from(CLUES))
ONE = st.tuples(st.sampled_from([OWN, *OTHERS]), FAULTY, SHARED)
COPIES = st.lists(ONE, max_size=6).map(lambda drawn: [seen(number, *one) for number, one in enumerate(drawn)])


def memories(copies: Sequence[Seen]) -> Iterator[list[tuple[Seen, bool]]]:
    """Copies, each with the word of a program on whether it has certain literals of the test: for all choices."""
    exactly = (("at", 2, "what no copy has"),)
    for looked in chain([exactly], *(combinations(CLUES, size) for size in range(len(CLUES) + 1))):
        yield [(one, frozenset(looked) <= one.shared) for one in copies]


def lies(copies: Sequence[Seen]) -> bool:
    """True if a constant for wrong answers and one for errors are right, with the test's own for some literals."""
    for met in memories(copies):
        strange = [one for one, knows in met if not knows]
        answers = [{one.answer for one in strange if one.wrong[0]}, {one.answer for one in strange if one.stops[0]}]
        if all(len(some) <= 1 for some in answers):
            shows = [one for one, knows in met if knows and (one.wrong[0] or one.stops[0])]
            if not any(one.is_new for one in shows):
                return True
    return False


@given(COPIES)
def test_copies_reach_a_fault_if_and_only_if_no_memory_with_constants_is_right_on_all(copies: list[Seen]) -> None:
    proof = _proof(copies, 0)
    assert bool(proof) == (not lies(copies))
    assert not proof or not lies([one for one in copies if one.copy in proof])


HELPED = b"""SIZE = 4

def made():
    return [1, SIZE]

@pytest.mark.parametrize("n", [5, 6])
def test_it(n):
    __ask__.value(1, (f(made(), n, 9)))
    __ask__.value(2, (f(made(), n, 3)))
"""


@pytest.mark.parametrize(
    ("before", "after", "case", "question", "told"),
    [
        (b"9", b"8", 0, 1, True),
        (b"9", b"8", 0, 2, False),
        (b"= 4", b"= 2", 1, 2, True),
        (b"[1, SIZE]", b"[1, 1, SIZE]", 0, 1, True),
        (b"[5", b"[7", 0, 1, True),
        (b"[5", b"[7", 1, 1, False),
    ],
)
def test_clues_are_what_an_input_is_made_of(before: bytes, after: bytes, case: int, question: int, told: bool) -> None:
    copy = HELPED.replace(before, after)
    one, other = (clues(text, "test_a.py::test_it", question, 0, (case, 2)) for text in (HELPED, copy))
    assert copy != HELPED and bool(one - other) == told
