"""Messages must arrive as they were sent, whatever an agent or an environment writes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.handle.messages import (
    decode,
    encode,
    step_from_wire,
    step_to_wire,
    task_from_wire,
    task_to_wire,
)

ANY_TEXT = st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Cc", "Zl"]))  # lone surrogates too


@given(ANY_TEXT)
def test_every_text_survives_on_one_line(text):
    line = encode({"text": text})
    assert line.count(b"\n") == 1
    assert decode(line) == {"text": text}


def test_neighbouring_lone_surrogates_are_not_joined_to_one_sign():
    text = "\ud83d" + "\ude00"
    assert decode(encode({"text": text}))["text"] == text
    assert json.loads(json.dumps(text)) != text  # what plain escapes would do


NUMBERS = st.dictionaries(ANY_TEXT, st.floats(-1, 1))


FLOATS = st.floats(allow_nan=False)  # which would differ from itself


@given(st.builds(Answer, ANY_TEXT, FLOATS, parts=NUMBERS, measures=NUMBERS, progress=st.none() | FLOATS))
def test_a_step_comes_back_equal(step):
    assert step_from_wire(decode(encode({"step": step_to_wire(step)}))["step"]) == step


def test_a_task_comes_back_equal_and_with_the_same_content():
    task = Task("a/1", "test", {"x": [1, 2.5, None], "y": {"é": True}}, "easy", ("one", "two"))
    assert task_from_wire(decode(encode(task_to_wire(task)))) == task
    tuples = Task("a/1", "test", {"x": (1, 2)})
    assert task_from_wire(decode(encode(task_to_wire(tuples)))).content == tuples.content


@pytest.mark.parametrize("line", [b'{"id": 1}', b"garbage\n", b"[1]\n", b"\xff\n", b"\n", b""])
def test_what_is_not_one_whole_message_is_refused(line):
    with pytest.raises(ValueError):
        decode(line)
