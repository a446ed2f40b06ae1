from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from tiny_library import TINY, tiny  # noqa: F401

from manyturn.envs.software.mutation.candidates import PER_FUNCTION, Fault, combined, singles, split_of
from manyturn.envs.software.source.edits import Edit
from manyturn.envs.software.source.libraries import library

CALLED = [f"tiny.py:{name}" for name in ("largest", "clipped", "Total.add", "Total.__init__")]
CALLS = {"tests/test_tiny.py": CALLED, "tests/test_more.py": ["tiny.py:largest"]}


def test_the_seed_alone_decides_on_faults_and_their_order(tiny):  # noqa: F811
    first = list(singles(tiny, CALLS, 0))
    assert first == list(singles(tiny, dict(reversed(CALLS.items())), 0))
    assert first != list(singles(tiny, CALLS, 1))
    assert len({fault.id for fault in first}) == len(first)


def test_every_function_has_its_turn_before_one_has_a_second(tiny):  # noqa: F811
    faults = list(singles(tiny, CALLS, 0))
    rounds = Counter[str]()
    seen = []
    for fault in faults:
        ((_, edit),) = fault.edits
        rounds[edit.function] += 1
        seen.append(rounds[edit.function])
    assert all(before <= after for before, after in pairwise(seen)) and max(seen) <= PER_FUNCTION
    assert set(rounds) == {"largest", "clipped", "Total.add", "Total.__init__"}
    for function in rounds:
        operators = [edit.operator for fault in faults for _, edit in fault.edits if edit.function == function]
        assert len(set(operators)) == len(operators)


def test_only_functions_that_some_but_not_nearly_all_tests_call_are_edited(tiny):  # noqa: F811
    many = {f"tests/test_{number}.py": ["tiny.py:largest"] for number in range(50)}
    faults = list(singles(tiny, many | {"tests/test_tiny.py": ["tiny.py:clipped"]}, 0))
    assert {edit.function for fault in faults for _, edit in fault.edits} == {"clipped"}
    assert {fault.tests for fault in faults} == {("tests/test_tiny.py",)}


def fault(path: str, function: str, at: int) -> Fault:
    return Fault("tiny", ((path, Edit("constant", function, (at, at + 1), ("x",))),), (f"tests/test_{path}",))


def test_combined_faults_are_of_different_functions_and_rather_of_one_file():
    some = [fault("a.py", "f", 0), fault("a.py", "f", 5), fault("a.py", "g", 9), fault("b.py", "h", 0)]
    made = list(combined(some, 0))
    assert made == list(combined(reversed(some), 0)) and len(made) == 7
    assert all(len(one.functions) == len(one.edits) and list(one.edits) == sorted(one.edits) for one in made)
    files = [len({path for path, _ in one.edits}) for one in made]
    assert files == sorted(files)
    assert {test for one in made for test in one.tests} == {"tests/test_a.py", "tests/test_b.py"}


@pytest.mark.parametrize(("name", "split"), [("schema", "test"), ("networkx", "smoke")])
def test_a_library_held_out_is_for_testing_and_the_one_at_hand_for_smoke(name, split):
    assert {split_of(library(name), "a.py", f"f{number}") for number in range(200)} == {split}


def test_functions_are_shared_out_and_inner_ones_go_with_the_outer_one():
    shares = Counter(split_of(TINY, "tiny.py", f"f{number}") for number in range(3000))
    assert {split: round(count / 3000, 1) for split, count in shares.items()} == {
        "train": 0.7,
        "validation": 0.1,
        "test_functions": 0.2,
    }
    for number in range(100):
        assert split_of(TINY, "tiny.py", f"f{number}") == split_of(TINY, "tiny.py", f"f{number}.<locals>.g")
    assert split_of(replace(TINY, held_out=True), "tiny.py", "f") == "test"
