"""Problems of other projects: read as they are, or refused in one line."""

import json
import subprocess
import sys

import pytest
import small_checkouts as small

from manyturn.envs.software.tasks.importers import DataError, OtherRelease, known_outcomes, problems
from manyturn.envs.software.tasks.importers.testnames import names_of_tests as names_in

pytestmark = pytest.mark.filterwarnings("ignore::manyturn.envs.software.tasks.importers.checkout_reader.OtherRelease")


def test_humanevalfix_becomes_a_faulty_file_and_a_hidden_test(tmp_path):
    (found,) = problems(f"humanevalfix:{small.humanevalfix(tmp_path)}")
    assert found.id == "humanevalfix/0"
    assert found.files == {"solution.py": b"def twice(number: int) -> int:\n    return number * number\n"}
    assert found.fix["solution.py"].endswith(b"number + number\n")
    assert found.fail_to_pass == ("test_solution.py::test_twice",)
    assert "A number added to itself." in found.statement and "twice(number: int)" in found.statement
    test = found.tests["test_solution.py"].decode()
    assert test.startswith("from solution import *\n") and test.endswith("\n\ndef test_twice():\n    check(twice)\n")
    assert "\ncheck(twice)" not in test
    assert found.counts("solution.py") and not found.counts("test_solution.py") and not found.counts("conftest.py")


def test_quixbugs_becomes_a_program_a_test_and_what_they_need(tmp_path):
    double, walk = problems(f"quixbugs:{small.checkout(tmp_path, small.QUIXBUGS)}")
    assert (double.id, walk.id) == ("quixbugs/double", "quixbugs/walk")
    assert list(double.files) == ["python_programs/double.py"] and "python_programs/double.py" not in double.tests
    cases = double.tests["python_testcases/test_double.py"].decode()
    assert "[[[3], 6], [['é'], 'éé']," in cases and "load(" not in cases  # so that nothing else tells what is expected
    assert not any(path.endswith(".json") for path in (*double.tests, *walk.tests))
    assert not any("correct" in path for path in (*double.files, *double.tests))
    assert walk.fail_to_pass == ("python_testcases/test_walk.py::test1", "python_testcases/test_walk.py::test2")


def test_exercism_becomes_a_stub_with_instructions(tmp_path):
    (half,) = problems(f"exercism:{small.checkout(tmp_path, small.EXERCISM)}")
    assert half.statement == "# Instructions\n\nHalve a number.\n\nOf any kind.\n\nFill in half.py."
    assert half.files == {"half.py": b"def half(n):\n    pass\n"} and sorted(half.tests) == [
        "half_test.py",
        "helper.py",
    ]
    assert half.fail_to_pass == ("half_test.py::HalfTest::test_even", "half_test.py::HalfTest::test_odd")


@pytest.mark.parametrize("kind", ["quixbugs", pytest.param("exercism", marks=pytest.mark.slow)])
def test_the_ids_are_those_that_pytest_gives(tmp_path, kind):
    source = small.checkout(tmp_path / "source", {"quixbugs": small.QUIXBUGS, "exercism": small.EXERCISM}[kind])
    for problem in problems(f"{kind}:{source}"):
        place = tmp_path / problem.id.replace("/", "-")
        for path, content in {**problem.files, **problem.tests}.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)
        files = sorted({test.partition("::")[0] for test in problem.fail_to_pass})
        (place / "pytest.ini").touch()  # or one in a folder above would count
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
        told = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
        assert [line for line in told.splitlines() if "::" in line] == [*problem.fail_to_pass, *problem.pass_to_pass]


def test_another_release_is_a_warning_in_one_line(tmp_path):
    with pytest.warns(OtherRelease, match=r"1 rows that differ from the 164"):
        problems(f"humanevalfix:{small.humanevalfix(tmp_path)}")
    with pytest.warns(OtherRelease, match="2 programs with tests, not 40"):
        problems(f"quixbugs:{small.checkout(tmp_path / 'q', small.QUIXBUGS)}")
    with pytest.warns(OtherRelease, match="1 exercises, not 138"):
        problems(f"exercism:{small.checkout(tmp_path / 'e', small.EXERCISM)}")


def test_tests_that_pass_before_the_mend_are_kept_apart_and_skipped_ones_left_out():
    table = {"a": known_outcomes.Measured(4, (1, 2), (3,))}
    assert known_outcomes.divided(table, "a", ["w", "x", "y", "z"]) == (("w",), ("x", "y"))
    assert known_outcomes.divided(table, "a", ["w", "x"]) is None
    assert known_outcomes.divided(table, "b", ["w", "x"]) == (("w", "x"), ())
    for known in (*known_outcomes.QUIXBUGS.values(), *known_outcomes.EXERCISM.values()):
        places = [*known.passes, *known.skips]
        assert sorted(set(places)) == sorted(places) and all(0 <= place < known.tests for place in places)


def test_an_exercise_that_passes_already_is_no_problem(tmp_path, monkeypatch):
    monkeypatch.setitem(known_outcomes.EXERCISM, "half", known_outcomes.Measured(2, (0, 1)))
    with pytest.raises(DataError, match="no exercises"):
        problems(f"exercism:{small.checkout(tmp_path, small.EXERCISM)}")


@pytest.mark.parametrize("spec", ["", "quixbugs", "quixbugs:", "other:/tmp", ":x", "x" * 1000])
def test_an_unknown_source_names_the_known_ones(spec):
    with pytest.raises(DataError, match="give humanevalfix:PATH, quixbugs:PATH, exercism:PATH"):
        problems(spec)


@pytest.mark.parametrize("kind", ["humanevalfix", "quixbugs", "exercism"])
def test_a_missing_or_wrong_place_is_one_line(tmp_path, kind):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    for place in ("none", "empty", "file"):
        with pytest.raises(DataError) as error:
            problems(f"{kind}:{tmp_path / place}")
        assert "\n" not in str(error.value) and "github.com" in str(error.value)


ROWS = [
    ({"entry_point": "../x"}, "no function's name"),
    ({"entry_point": "a; import os"}, "no function's name"),
    ({"task_id": "../../0"}, "not of the Python set"),
    ({"task_id": "Go/0"}, "not of the Python set"),
    ({"task_id": "Python/²"}, "not of the Python set"),
    ({"task_id": 7}, "task_id is int"),
    ({"buggy_solution": None}, "buggy_solution is NoneType"),
    ({"docstring": "\ud800"}, "half of a character"),
    ({"test": "def check(x:\n"}, "no Python"),
    ({"test": "(" * 10_000}, "no Python"),
    ({"test": "a\0b"}, "no Python"),
    ({"test": "import os"}, r"does not end with check\(twice\)"),
    ({"test": ""}, r"does not end with check\(twice\)"),
]


@pytest.mark.parametrize(("change", "why"), ROWS, ids=range(len(ROWS)))
def test_a_hostile_row_of_humanevalfix_is_named(tmp_path, change, why):
    file = small.humanevalfix(tmp_path, small.ROW, {**small.ROW, "task_id": "Python/1", **change})
    with pytest.raises(DataError, match=why) as error:
        problems(f"humanevalfix:{file}")
    assert "line 2" in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 400


def test_rows_that_are_no_objects_or_doubled_are_named(tmp_path):
    for text in ("[1]", "{", "7", "[" * 100_000):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(DataError, match="line 1"):
            problems(f"humanevalfix:{tmp_path / 'x.jsonl'}")
    with pytest.raises(DataError, match="twice"):
        problems(f"humanevalfix:{small.humanevalfix(tmp_path, small.ROW, small.ROW)}")


def test_a_missing_column_is_named(tmp_path):
    row = {key: value for key, value in small.ROW.items() if key != "test"}
    with pytest.raises(DataError, match="test is missing"):
        problems(f"humanevalfix:{small.humanevalfix(tmp_path, row)}")


CONFIG = "exercises__practice__half__.meta__config.json"
CONFIGS = [
    {"files": {"solution": ["../../../etc/passwd"], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": {"solution": ["/etc/passwd"], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": {"solution": ["half.py"], "test": ["-x"], "example": [".meta/example.py"]}},
    {"files": {"solution": ["half.py", "b.py"], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": {"solution": [7], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": {"solution": [], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": {"solution": ["none.py"], "test": ["half_test.py"], "example": [".meta/example.py"]}},
    {"files": "x"},
    {},
    [],
]


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_a_hostile_exercise_is_named(tmp_path, config):
    folder = small.checkout(tmp_path, small.EXERCISM, **{CONFIG: json.dumps(config)})
    with pytest.raises(DataError) as error:
        problems(f"exercism:{folder}")
    assert "half" in str(error.value) and "\n" not in str(error.value) and "root:" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("json_testcases__double.json", "[1]\n", "does not hold pairs"),
        ("json_testcases__double.json", "{", "not JSON"),
        ("python_testcases__test_double.py", "x = 1\n", "has no tests"),
        ("python_testcases__test_double.py", "def (", "no Python"),
        ("correct_python_programs__double.py", None, "cannot be read"),
        ("conftest.py", None, "cannot be read"),
    ],
)
def test_a_damaged_checkout_of_quixbugs_is_named(tmp_path, path, text, why):
    with pytest.raises(DataError, match=why) as error:
        problems(f"quixbugs:{small.checkout(tmp_path, small.QUIXBUGS, **{path: text})}")
    assert "\n" not in str(error.value)


def test_links_out_of_a_checkout_are_not_followed(tmp_path):
    folder = small.checkout(tmp_path / "q", small.QUIXBUGS)
    secret = tmp_path / "secret"
    secret.write_text("x")
    (folder / "python_programs" / "double.py").unlink()
    (folder / "python_programs" / "double.py").symlink_to(secret)
    with pytest.raises(DataError, match="leads out of the checkout"):
        problems(f"quixbugs:{folder}")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    folder = small.checkout(tmp_path, small.QUIXBUGS)
    with (folder / "python_programs" / "double.py").open("wb") as file:
        file.truncate(10**12)  # a hole: it takes no room
    with pytest.raises(DataError, match="more than 4,000,000 bytes"):
        problems(f"quixbugs:{folder}")


def test_parameters_are_named_as_pytest_names_them():
    pairs = [([1], "a\nb"), ([1], None), ([1], True), (2, 3.5), (2, 3.5), ("x", [0])]
    text = "def test_a(input_data, expected):\n    pass\n"
    assert names_in(text, "here", pairs) == [
        f"test_a[{label}]"
        for label in ("input_data0-a\\nb", "input_data1-None", "input_data2-True", "2-3.50", "2-3.51", "x-expected5")
    ]
