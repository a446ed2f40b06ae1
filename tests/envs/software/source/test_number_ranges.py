from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.source import number_ranges


@given(st.sets(st.integers(0, 60)))
def test_numbers_come_back_in_order(numbers):
    assert number_ranges.read(number_ranges.written(numbers)) == sorted(numbers)


def test_runs_are_written_by_their_ends():
    assert number_ranges.written([9, 1, 0, 2, 5]) == "0-2,5,9"
    assert number_ranges.written([]) == ""
