"""The script of the tests, and the changes that count, without an engine."""

from dataclasses import replace

import pytest
from needs import peer

from manyturn.envs.benchmarks.swebench.image_preparation import prepare
from manyturn.envs.benchmarks.swebench.log_grader import END, EXIT, START
from manyturn.envs.benchmarks.swebench.patch_evaluation import script_of_tests as script_of
from manyturn.envs.benchmarks.swebench.patch_extraction import counts, patched_files, with_input
from manyturn.envs.benchmarks.swebench.rows import SWEBENCH, SWEGYM, SWESMITH, DataError, Row

TEST_PATCH = "diff --git a/tests/m/tests.py b/tests/m/tests.py\n+x\ndiff --git a/tests/a.json b/tests/a.json\n+y\n"
ROW = Row(SWEBENCH, "a__b-1", "a/b", "0" * 40, "text", fail_to_pass=("t/x y.py::a",), pass_to_pass=("t/b.py::b",))


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("src/_pytest/config.py", True),
        ("setup.cfg", True),
        ("a/testing_tools.py", True),
        ("latest.py", True),
        ("tests/helper.py", False),
        ("a/test_b.py", False),
        ("a/b_test.py", False),
        ("sympy/testing/runtests.py", False),
        ("conftest.py", False),
        ("a/sitecustomize.py", False),
        ("evil.pth", False),
        ("x.pyc", False),
        ("docs/touched.py", False),
    ],
)
def test_tests_and_what_steers_them_are_not_part_of_a_patch(path, good):
    assert counts(path, {"docs/touched.py"}) is good


def test_the_harness_own_script_gets_to_tell_the_exit_code_of_the_tests():
    row = replace(ROW, script=f"set -x\n: '{START}'\npytest -rA\n: '{END}'\ngit checkout x")
    lines = script_of(row).splitlines()
    place = lines.index("pytest -rA")
    assert lines[place + 1] == "manyturn_code=$?"
    assert (END in lines[place + 2], lines[place + 3]) == (True, f'echo "{EXIT}: $manyturn_code"')


@pytest.mark.slow
def test_the_harness_writes_the_same_script():
    theirs = peer("swebench.harness.utils")
    script = f"set -x\n: '{START}'\npytest -rA\n: '{END}'\ngit checkout x"
    expected = "\n".join(theirs.record_test_exit_code(theirs.parse_eval_script(script))) + "\n"
    assert script_of(replace(ROW, script=script)).replace("manyturn_code", "SWEBENCH_TEST_EXIT_CODE") == expected


def test_without_a_script_the_patched_test_files_are_run():
    assert "\npytest -rA --color=no -p no:cacheprovider tests/m/tests.py\n" in script_of(
        replace(ROW, test_patch=TEST_PATCH)
    )
    django = replace(ROW, test_patch=TEST_PATCH, repository="django/django")
    assert "--parallel 1 m.tests\n" in script_of(django)
    given = replace(ROW, test_patch=TEST_PATCH, family=SWEGYM, command="make test")
    assert "\nmake test tests/m/tests.py\n" in script_of(given)


def test_without_a_patch_of_tests_the_named_files_are_run():
    assert "t/b.py 't/x y.py'\n" in script_of(replace(ROW, family=SWESMITH))


def test_any_text_reaches_a_command_as_it_is():
    assert "$(rm" not in with_input(b"$(rm -rf /)\nEND_OF_TEXT\n", "cat")


def test_renamed_and_new_files_are_patched_files():
    assert patched_files("diff --git a/x b/y\nrename\ndiff --git a/z b/z\nnew file\n+diff --git a/q b/q\n") == [
        "y",
        "z",
    ]


@pytest.mark.parametrize("file", ["/etc/passwd", "../x.py", "a/../../b.py", ".git/config", "a\nb.py"])
def test_a_row_cannot_have_files_outside_of_its_repository_moved(file):
    row = replace(ROW, family=SWESMITH, fail_to_pass=(f"{file}::test",))
    with pytest.raises(DataError, match="no path below the repository"):
        prepare(row, "any:1")
