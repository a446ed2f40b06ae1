"""Tests that pass before the fix, and those never run: measured in a container, Python 3.11 and pytest 7.2.

Tests are told by their places in the order of ``names_of_tests``; a program that is not named has only tests that fail.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Measured(NamedTuple):
    """Results of a program's tests before the fix.

    Attributes:
        tests: how many there were.
        passes: places of those that passed.
        skips: places of those that are skipped, fixed or not.
    """

    tests: int
    passes: tuple[int, ...]
    skips: tuple[int, ...] = ()


def divided(
    table: Mapping[str, Measured], name: str, tests: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Tests that fail before the fix, and tests that pass before and after it; None if there are others than measured.

    Args:
        table: QUIXBUGS or EXERCISM.
        name: of the program.
        tests: its tests, in the order of ``names_of_tests``.
    """
    count, passes, skips = table.get(name, Measured(len(tests), ()))
    if count != len(tests):
        return None
    fails = [test for place, test in enumerate(tests) if place not in passes and place not in skips]
    return tuple(fails), tuple(tests[place] for place in passes)


QUIXBUGS: Mapping[str, Measured] = {
    "breadth_first_search": Measured(5, (0, 1, 3, 4)),
    "bucketsort": Measured(7, (0,)),
    "depth_first_search": Measured(5, (0, 1, 2, 3)),
    "detect_cycle": Measured(6, (0, 1, 2, 4, 5)),
    "find_first_in_sorted": Measured(7, (0,)),
    "find_in_sorted": Measured(7, (0, 2, 3, 4, 5)),
    "flatten": Measured(7, (1,)),
    "gcd": Measured(6, (0,)),
    "get_factors": Measured(11, (0,)),
    "hanoi": Measured(8, (0,)),
    "is_valid_parenthesization": Measured(3, (0, 1)),
    "kheapsort": Measured(4, (0,)),
    "knapsack": Measured(10, (0, 2, 8), (9,)),
    "kth": Measured(7, (2, 3, 4)),
    "lcs_length": Measured(9, (2,)),
    "levenshtein": Measured(7, (5,), (3,)),
    "lis": Measured(12, (0, 1, 2, 3, 4, 5, 6, 7)),
    "longest_common_subsequence": Measured(10, (0, 1, 2, 4, 8, 9)),
    "max_sublist_sum": Measured(6, (2, 4)),
    "mergesort": Measured(14, (0,)),
    "next_palindrome": Measured(5, (0, 1, 2, 3)),
    "pascal": Measured(5, (0,)),
    "possible_change": Measured(10, (0,)),
    "powerset": Measured(5, (3,)),
    "quicksort": Measured(13, (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    "reverse_linked_list": Measured(3, (2,)),
    "rpn_eval": Measured(6, (1, 3, 4)),
    "shortest_path_length": Measured(4, (2, 3)),
    "shunting_yard": Measured(6, (0, 1)),
    "sieve": Measured(6, (0,)),
    "subsequences": Measured(12, (1, 2)),
    "to_base": Measured(10, (0, 1, 2)),
}

EXERCISM: Mapping[str, Measured] = {
    "alphametics": Measured(10, (1, 2), (9,)),
    "clock": Measured(55, (40, 41)),
    "complex-numbers": Measured(43, (41, 42)),
    "custom-set": Measured(40, (2, 4, 17, 18, 20, 21)),
    "diffie-hellman": Measured(6, (5,)),
    "dominoes": Measured(13, (2, 5, 6, 7, 8, 12)),
    "ledger": Measured(11, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
    "markdown": Measured(17, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)),
    "queen-attack": Measured(14, (0,)),
    "rational-numbers": Measured(43, (36, 37, 38, 39, 40, 41, 42)),
    "react": Measured(14, (1, 13)),
    "sublist": Measured(22, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21)),
    "tree-building": Measured(13, (0, 1, 2, 3, 4, 5, 6)),
    "word-search": Measured(24, (0, 20, 21, 22, 23)),
}
