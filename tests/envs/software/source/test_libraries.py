from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.source.libraries import LIBRARIES, PYTEST_INI, library

NAMES = st.sampled_from(
    ["..", ".", "", "tests", "test", "conftest.py", "test_x.py", "x_test.py", "x.py", "x.pth", "__pycache__", "src"]
    + [place.rstrip("/") for known in LIBRARIES.values() for place in known.code + known.tests]
)

TERMS = {
    "MIT": ["Permission is hereby granted, free of charge", "The above copyright notice and this permission notice"],
    "BSD-3-Clause": [
        "Redistribution and use in source and binary forms",
        "to endorse or promote products derived from",
    ],
}


@given(st.sampled_from(list(LIBRARIES.values())), st.lists(NAMES, min_size=1, max_size=4))
def test_what_counts_never_grades_nor_lies_outside_of_the_library(known, names):
    path = "/".join(names)
    if known.counts(path):
        assert not known.grades(path)
        assert str(PurePosixPath(path)) == path and ".." not in names
        assert any(path == place or path.startswith(place) for place in known.code)


@pytest.mark.parametrize("known", LIBRARIES.values(), ids=LIBRARIES)
def test_files_that_steer_tests_or_python_do_not_count(known):
    folder = next((place for place in known.code if place.endswith("/")), "")
    steering = [
        *("conftest.py", "sitecustomize.py", "usercustomize.py", "x.pth", PYTEST_INI, "setup.cfg", "tox.ini"),
        *("pyproject.toml", ".pytest.ini", "json.py", "_pytest/__init__.py", "setup.py"),
        *(
            f"{folder}{name}"
            for name in ("conftest.py", "x.pth", "__pycache__/x.py", "tests/x.py", "test_x.py", "x.so")
        ),
    ]
    assert [path for path in steering if known.counts(path)] == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if known.archive else name for name, known in LIBRARIES.items()]
)
def test_every_file_of_a_release_that_is_run_either_counts_or_grades(name, sources):
    known, files = library(name), sources(name)
    assert {
        path for path in files if path.endswith(".py") and not known.counts(path) and not known.grades(path)
    } == set()
    assert any(known.counts(path) for path in files) and any(known.grades(path) for path in files)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, known in LIBRARIES.items() if known.archive])
def test_a_licence_is_the_one_that_the_release_has(name, sources):
    known = library(name)
    words = " ".join(sources(name)[known.terms].decode().split())
    assert all(phrase in words for phrase in TERMS[known.licence])


def test_an_unknown_library_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"no library requests: there are .*networkx"):
        library("requests")
