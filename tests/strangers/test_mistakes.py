"""First mistakes in an environment: each is found by check, with what is wrong and where."""

from pathlib import Path

import pytest

BAD = Path(__file__).parent / "bad.py"

SAID = {  # class of bad.py: phrases of what check says
    "Raises": ["KeyError", "missing"],
    "Overlapping": ["same problem"],
    "SameIds": ["names two problems"],
    "Chance": ["self.rng"],
    "BadExpert": ["the expert fails"],
    "WrongRole": ["'middle'", "the roles are left, right"],
    "NoRole": ["override role()"],
    "Exits": ["7"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_check_says_what_is_wrong(command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "1000")  # so that no phrase is broken by the table
    found = command("check", f"{BAD}:{name}", "--samples", 4)
    said = found.out + found.err
    assert found.code == 1 and "Traceback" not in said, said
    assert all(phrase in said for phrase in SAID[name]), said


@pytest.mark.slow
def test_check_passes_what_the_mistakes_are_made_in(command):
    found = command("check", f"{BAD}:Lamp")
    assert found.code == 0, found.out


def test_an_environment_that_hangs_ends_its_check(command):
    found = command("check", f"{BAD}:Hangs", "--samples", 1, "--timeout", 0.5)
    assert found.code == 1 and "respond" in found.out and "bad.py" in found.out, found.out
