"""A fault counts as reached only if nobody who knows the test by some of its literals is right on all copies."""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.grading.fault_detection import Seen, _proof
from manyturn.envs.software.grading.literal_fingerprints import Clue, clues

CLUES: list[Clue] = [("at", 0, "7"), ("at", 1, "8"), ("often", 1, "7"), ("list", 0, "3")]
ALL = frozenset(CLUES)
OWN, OTHERS = "own", ("other", "another")


def seen(number: int, answer: str, wrong: bool, kept: frozenset[Clue]) -> Seen:
    return Seen(f"copy {number}", answer, answer != OWN, kept, [wrong])


ONE = st.tuples(st.sampled_from([OWN, *OTHERS]), st.booleans(), st.frozensets(st.sampled_from(CLUES)))
COPIES = st.lists(ONE, max_size=6).map(lambda drawn: [seen(number, *one) for number, one in enumerate(drawn)])


def right(copies: Iterable[Seen]) -> Iterator[frozenset[Clue]]:
    """Of those who give the test's own answer where certain clues stand: the clues of who is right on all copies."""
    copies, exactly = list(copies), (("at", 2, "what no copy has"),)
    for looked in chain([exactly], *(combinations(CLUES, size) for size in range(len(CLUES) + 1))):
        met = [(one, frozenset(looked) <= one.shared) for one in copies]
        if all(not one.is_new if known else not one.wrong[0] for one, known in met):
            yield frozenset(looked)  # and the faulty program's answer elsewhere
        for constant in (OWN, *OTHERS):
            if all(one.answer == (OWN if known else constant) for one, known in met):
                yield frozenset(looked)  # and one answer elsewhere


@given(COPIES)
def test_copies_reach_a_fault_if_and_only_if_nobody_who_knows_the_test_is_right_on_all(copies: list[Seen]) -> None:
    proof = _proof(copies, 0)
    assert bool(proof) == (not any(True for _ in right(copies)))
    assert not proof or not any(True for _ in right([one for one in copies if one.copy in proof]))


def test_a_truth_value_is_reached_by_no_copy_that_keeps_what_decides_it() -> None:
    """Both answers occur, and the fault is seen; but only where the test's own literal stands."""
    keeps, other = ALL - {CLUES[1]}, frozenset({CLUES[1]})
    assert not _proof([seen(0, OWN, True, keeps), seen(1, "other", False, other)], 0)
    assert _proof([seen(0, OWN, True, keeps), seen(1, OWN, True, other), seen(2, "other", False, other)], 0)


def test_one_answer_to_all_other_inputs_is_no_secret() -> None:
    keeps, other = ALL - {CLUES[1]}, frozenset({CLUES[1]})
    assert not _proof([seen(0, OWN, True, keeps), *(seen(n, "none", True, other) for n in range(1, 9))], 0)
    assert _proof([seen(0, "none", True, other), seen(1, "another", True, other)], 0)


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
