"""Whatever a model writes is one act on one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.sotopia.env import ACTION, GESTURE, LEAVE, LONGEST, NONE, SPEAK, Act, act_of
from manyturn.envs.benchmarks.sotopia.scene import shown


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("speak: Good morning!", Act(SPEAK, "Good morning!")),
        ("Good morning!", Act(SPEAK, "Good morning!")),
        ("SPEAK:yes", Act(SPEAK, "yes")),
        ("non-verbal: nods", Act(GESTURE, "nods")),
        ("Non-verbal communication: nods", Act(GESTURE, "nods")),
        ("action: hands over\nthe jar", Act(ACTION, "hands over the jar")),
        ("none", Act(NONE)),
        ("None.", Act(NONE)),
        ("leave", Act(LEAVE)),
        ("leave me alone", Act(SPEAK, "leave me alone")),
        ("none of it is true", Act(SPEAK, "none of it is true")),
        ("action:", Act(NONE)),
        (" \n", Act(NONE)),
        ("", Act(NONE)),
    ],
)
def test_a_text_is_the_act_that_it_names_and_speech_otherwise(text, act):
    assert act_of(text) == act


@given(st.text(max_size=200) | st.sampled_from(["speak: " + "x" * 5000, "action:\x00\x1b[31m", "leave\u2028leave"]))
def test_any_text_is_one_act_on_one_line(text):
    act = act_of(text)
    assert len(act.content) <= LONGEST
    assert len(act.as_heard("Ada").splitlines()) == 1
    assert bool(act.content) == (act.kind in (SPEAK, GESTURE, ACTION))


@pytest.mark.parametrize(
    ("viewer", "seen"),
    [("agent_0", "Meet. Mine."), ("agent_1", "Meet.  Yours."), ("environment", "Meet. Mine. Yours.")],
)
def test_what_is_marked_for_one_viewer_is_shown_to_no_other(viewer, seen):
    text = "Meet. <p viewer='agent_0'>Mine.</p> <p viewer=\"agent_1\"><extra_info>Yours.</extra_info></p>"
    assert " ".join(shown(text, viewer).split()) == " ".join(seen.split())
