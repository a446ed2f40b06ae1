from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.mutation.fault_validation import clearest_failure, plain_message
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.statement import statement


def test_addresses_and_what_is_too_long_are_left_out():
    assert plain_message("<f at 0x7f15dc305110> \n\n  x") == "<f at 0x...>\n  x"
    assert plain_message("a\nb\nc\nd\ne") == "a\nb\nc\nd"


@given(st.text(max_size=2000))
def test_a_message_is_short_whatever_it_was(message):
    assert len(plain_message(message)) < 330


def test_the_error_that_tells_most_is_taken():
    messages = {
        "a": "assert False",
        "b": "ValueError: not a number: x",
        "c": "assert 1 == 2\n +  where 1 = f(0)",
        "d": "",
    }
    assert clearest_failure(messages, messages) == ("b", messages["b"])
    assert clearest_failure(messages, ["a", "d"]) == ("a", "assert False")
    assert clearest_failure({}, ["z", "y"]) == ("y", "")


TEST, OTHER = "tests/test_x.py::test_one", "tests/test_x.py::test_two"


def test_only_an_easy_task_names_a_test():
    known = library("toolz")
    easy = statement(known, "easy", (TEST, OTHER), ((TEST, "assert 1 == 2"),))
    medium = statement(known, "medium", (TEST, OTHER), ((TEST, "assert 1 == 2"),))
    hard = statement(known, "hard", (TEST, OTHER), ((TEST, "assert 1 == 2"), (OTHER, "KeyError: 'x'")))
    assert TEST in easy and "2 of its tests fail" in easy and OTHER not in easy
    assert "test_one" not in medium and "assert 1 == 2" in medium
    assert "2 bugs" in hard and "test_two" not in hard and "KeyError: 'x'" in hard
    assert "toolz 1.0.0" in easy and "toolz/, tlz/" in easy


def test_a_fault_without_a_message_says_nothing_of_one():
    assert "seen" not in statement(library("toolz"), "medium", (TEST,), ((TEST, ""),))
