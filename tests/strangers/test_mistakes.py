"""First mistakes in an environment: each is found by check, with what is wrong and where."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

SAID = {  # what phrases of check's table say of FILE:CLASS
    "bad.py:WrongRole": ["'middle'", "the roles are left, right"],
    "bad.py:NoRole": ["override role()"],
    "bad.py:Exits": ["7"],
    "plain.py:OtherWord": ["info['valid']", "give info['understood']", "info['format_valid']", ", in step)"],
    "plain.py:Misspelt": ["info['undertsood']", "give info['understood']", ", in step)"],
    "plain.py:Verdict": ["info['understood'] = '", "give True or False", ", in step)"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_check_says_what_is_wrong(command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "1000")  # so that no phrase is broken by the table
    found = command("check", f"{HERE}/{name}", "--samples", 4)
    said = found.out + found.err
    assert found.code == 1 and "Traceback" not in said, said
    assert all(phrase in said for phrase in SAID[name]), said


@pytest.mark.slow
def test_a_return_that_is_never_a_success_is_warned_of(command):
    found = command("check", f"{HERE}/plain.py:Corridor", "--samples", 4)
    assert found.code == 0 and "success_above" in found.out and "info" in found.out, found.out


@pytest.mark.slow
def test_a_key_that_is_nearly_one_of_ours_is_warned_of(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    found = command("check", f"{HERE}/plain.py:MisspeltActions", "--samples", 4)
    assert found.code == 0 and "info['admissable'] is not read: 'admissible' is" in found.out, found.out
    assert "distance" not in found.out


@pytest.mark.slow
def test_a_word_of_other_gyms_next_to_ours_is_nobodys_business(command):
    found = command("check", f"{HERE}/plain.py:BothWords", "--samples", 4)
    assert found.code == 0 and "'valid'" not in found.out, found.out


@pytest.mark.slow
def test_check_passes_what_the_mistakes_are_made_in(command):
    found = command("check", f"{HERE}/bad.py:Lamp")
    assert found.code == 0, found.out


def test_an_environment_that_hangs_ends_its_check(command):
    found = command("check", f"{HERE}/bad.py:Hangs", "--samples", 1, "--timeout", 0.5)
    assert found.code == 1 and "respond" in found.out and "bad.py" in found.out, found.out
