"""One registry for everything that has a name: a recipe must reach what it names, or be answered with the reason."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import plugin_package
import pytest

from manyturn.envs.contract.options.registry import Named, Registry

pytestmark = pytest.mark.versions

ROUND = """
from typing import Literal
from manyturn.envs.contract.options.registry import Named, Registry

ROUNDINGS = Registry("rounding", "{module}")

class RoundConfig(Named):
    name: Literal["round"] = "round"
    digits: int = 0

@ROUNDINGS.register(RoundConfig)
def round_(x, config):
    return round(x, config.digits)
"""
FLOOR = """
from typing import Literal
from manyturn.envs.contract.options.registry import Named
from roundings import ROUNDINGS

class FloorConfig(Named):
    name: Literal["{name}"] = "{name}"

@ROUNDINGS.register(FloorConfig)
def floor(x, config):
    return int(x // 1)
"""


class RoundConfig(Named):
    name: Literal["round"] = "round"
    digits: int = 0
    """How many stay."""


@pytest.fixture
def roundings() -> Registry[float]:
    found = Registry[float]("rounding")
    found.register(RoundConfig)(lambda x, config: round(x, config.digits))
    return found


def python(code: str, *sites: Path) -> subprocess.CompletedProcess[str]:
    """Another process, in which the packages of these folders are installed."""
    path = os.pathsep.join([*map(str, sites), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("value", ["round", {"name": "round"}, RoundConfig()])
def test_a_name_a_table_and_options_stand_for_the_same(roundings, value):
    assert roundings.parse(value) == RoundConfig()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("rond", "unknown rounding 'rond'; did you mean 'round'"),
        ({"digits": 1}, "names no rounding: give a name of round"),
        ({"name": 3}, "names no rounding"),
        (None, "None names no rounding"),
        ({"kind": "round", "digits": 1}, "kind = 'round' does not choose the rounding: write name = 'round'"),
        ({"name": "round", "kind": "round"}, "write name = 'round'"),
        ({"name": "round", "digit": 1}, "unknown Round option 'digit'; did you mean 'digits'"),
    ],
)
def test_what_names_nothing_is_answered_with_what_would(roundings, value, message):
    with pytest.raises(ValueError, match=message):
        roundings.parse(value)


def test_a_class_is_registered_as_a_function_is(roundings):
    class Half(Named):
        name: Literal["half"] = "half"

    @roundings.register(Half)
    class Halves:
        def __init__(self, x: float, config: Half):
            self.value = round(2 * x) / 2

    assert roundings.apply(roundings.parse("half"), 1.3).value == 1.5


def test_two_entries_of_one_name_are_both_named(roundings):
    class Mine(Named):
        name: Literal["round"] = "round"

    with pytest.raises(ValueError, match=r"'round' is registered twice, by .*test_registry and .*test_registry"):
        roundings.register(Mine)(lambda x, config: x)
    with pytest.raises(ValueError, match="Mine is not the configuration of rounding 'round', which is RoundConfig"):
        roundings.parse(Mine())


def test_a_cell_of_a_notebook_that_is_run_again_replaces_what_it_registered():
    cell = ROUND.format(module="").replace(', ""', "").partition("ROUNDINGS = ")
    head, registered = cell[0] + "ROUNDINGS = " + cell[2].partition("\n")[0], cell[2].partition("\n")[2]
    again = registered.replace("round(x, config.digits)", "-x")
    show = "print(ROUNDINGS.apply(ROUNDINGS.parse('round'), 1.0))"
    found = python("\n".join([head, registered, show, again, show]))
    assert (found.returncode, found.stdout.split()) == (0, ["1.0", "-1.0"]), found.stderr
    other = python("\n".join([head, registered, again.replace("def round_", "def other")]))
    assert "registered twice" in other.stderr


def test_what_an_entry_remembers_comes_back_to_it_alone(roundings):
    class Sum(Named):
        name: Literal["sum"] = "sum"

    @roundings.register(Sum, remembers=True)
    def summed(x: float, config: Sum, before: dict[str, Any] | None) -> tuple[float, dict[str, Any]]:
        total = x + (before or {"total": 0.0})["total"]
        return total, {"total": total}

    memory: Any = {"of another": 1}
    for expected in (2.0, 4.0):
        total, memory = roundings.apply_remembering(Sum(), memory, 2.0)
        assert total == expected
    assert memory == {"of another": 1, "rounding sum": {"total": 4.0}}
    assert roundings.apply_remembering(RoundConfig(), memory, 2.2) == (2.0, memory)
    with pytest.raises(ValueError, match="remembers: run it with apply_remembering"):
        roundings.apply(Sum(), 2.0)


def test_a_plugin_is_found_when_its_name_is_first_used(tmp_path):
    plugin_package.install(tmp_path, "floors", FLOOR.format(name="floor"))
    (tmp_path / "roundings.py").write_text(ROUND.format(module="roundings"))
    code = (
        "import sys; from roundings import ROUNDINGS as all\n"
        "print(all.apply(all.parse('round'), 1.7), 'floors' in sys.modules)\n"
        "print(all.apply(all.parse('floor'), 1.7), 'floors' in sys.modules)\n"
    )
    found = python(code, tmp_path)
    assert found.stdout.split() == ["2.0", "False", "1", "True"], found.stderr


def test_a_plugin_that_takes_a_name_is_named_with_its_rival(tmp_path):
    plugin_package.install(tmp_path, "floors", FLOOR.format(name="round"))
    (tmp_path / "roundings.py").write_text(ROUND.format(module="roundings"))
    found = python("from roundings import ROUNDINGS as all; all.parse('ceil')", tmp_path)
    assert "it may be a name of a plugin that is broken: the plugin 'floors' of floors (floors) raised" in found.stderr
    assert "rounding 'round' is registered twice, by roundings and floors: choose another name" in found.stderr
