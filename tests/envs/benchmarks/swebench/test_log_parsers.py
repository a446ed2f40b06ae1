"""Reading a log wrongly turns every reward of a repository into noise."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import peer

from manyturn.envs.benchmarks.swebench import log_parsers as ours

LOGS = {
    "pytest": (
        "PASSED a.py::t1\nFAILED a.py::t2 - 1 == 2\nSKIPPED [3] a.py:5: why\nXFAIL a.py::t3\nERROR a.py::t4 - no\n"
        "xPASSED a.py::t5\nPASSED\n",
        {"a.py::t1": "PASSED", "a.py::t2": "FAILED", "a.py::t3": "XFAIL", "a.py::t4": "ERROR"},
    ),
    "pytest_options": (
        "PASSED a.py::t[/home/me/x.py]\nPASSED a.py::t[//host/x]\nFAILED a.py::t[a-b] - no\nPASSED a.py::t[/a/*]\n",
        {
            "a.py::t[/x.py]": "PASSED",
            "a.py::t[//host/x]": "PASSED",
            "a.py::t[a-b]": "FAILED",
            "a.py::t[/a/*]": "PASSED",
        },
    ),
    "pytest_v2": (
        "\x1b[32mPASSED\x1b[0m a.py::t[x y]\nFAILED a.py::t2 - at 3 - 4\na.py::t3 PASSED\nSKIPPED [1] a.py:2: no\n",
        {"a.py::t[x y]": "PASSED", "a.py::t2": "FAILED", "a.py::t3": "PASSED"},
    ),
    "matplotlib": (
        "PASSED a.py::t[MouseButton.LEFT-x]\nFAILED a.py::t[MouseButton.RIGHT]\n",
        {"a.py::t[1-x]": "PASSED", "a.py::t[3]": "FAILED"},
    ),
    "seaborn": (
        "a.py::t1 PASSED [ 3%]\nPASSED a.py::t2\nFAILED a.py::t3 - no\nERROR a.py::t4\nSKIPPED a.py::t5\n",
        {"a.py::t1": "PASSED", "a.py::t2": "PASSED", "a.py::t3": "FAILED"},
    ),
    "sympy": (
        "test_a ok\ntest_b F\ntest_c E\ntest_d f\n____ sympy/core/tests/test_x.py:test_b ____\n  test_e   ok\n",
        {
            "sympy/core/tests/test_x.py:test_b": "FAILED",
            "test_a": "PASSED",
            "test_b": "FAILED",
            "test_c": "ERROR",
            "test_e": "PASSED",
        },
    ),
    "django": (
        "test_a (m.C) ... ok\ntest_b (m.C) ... FAIL\ntest_c (m.C) ... ERROR\ntest_d (m.C) ... skipped 'why'\n"
        "test_e (m.C) ... noise\nok\ntest_f (m.C) ... Internal Server Error: /x/\nok\n"
        "test_g (m.C) ... Testing against Django installed in '/x' with 2 processes (0 silenced).\nok\n"
        "test_h (m.C) ... System check identified no issues (0 silenced)\nok\n"
        "FAIL: test_i (m.C)\nERROR: test_j (m.C)\n--version is equivalent to version\nERROR:\n"
        "Applying sites.0002_alter_domain_unique...test_no_migrations (m.D) ... ok\n",
        {
            **{f"test_{x} (m.C)": "PASSED" for x in "aefgh"},
            "test_b (m.C)": "FAILED",
            "test_c (m.C)": "ERROR",
            "test_d (m.C)": "SKIPPED",
            "test_i": "FAILED",
            "test_j": "ERROR",
            "--version is equivalent to version": "PASSED",
            "test_no_migrations (m.D)": "PASSED",
        },
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_runners_log_is_read(name):
    log, expected = LOGS[name]
    assert ours.parser_of("", f"parse_log_{name}")(log) == expected


@pytest.mark.parametrize(
    ("repository", "name"),
    [
        ("django/django", "django"),
        ("sympy/sympy", "sympy"),
        ("mwaskom/seaborn", "seaborn"),
        ("matplotlib/matplotlib", "matplotlib"),
        ("astropy/astropy", "pytest_v2"),
        ("psf/requests", "pytest_options"),
        ("pallets/flask", "pytest"),
        ("some/other", "pytest"),
    ],
)
def test_a_row_without_a_parser_gets_its_repositorys(repository, name):
    assert ours.parser_of(repository) is getattr(ours, f"{name}_log")


def test_a_parser_of_another_language_is_unknown():
    with pytest.raises(KeyError):
        ours.parser_of("x/y", "parse_log_karma")


HOSTILE = [
    " " * 300_000,
    "_" * 300_000,
    "test .py: " * 30_000,
    "a ... Internal Server Error: /" * 10_000 + "\nok",
    "a ... Testing against Django installed in \n" * 10_000,
    "[" * 300_000,
    "PASSED " + "[" * 300_000 + "\n",
    "PASSED " + "[/" * 100_000 + "]\n",
    "\x1b[" * 100_000,
    "FAILED" + " - " * 100_000,
]


@pytest.mark.parametrize("name", LOGS)
def test_a_hostile_log_does_not_hold_the_grader_up(name):
    parse = ours.parser_of("", f"parse_log_{name}")
    start = time.process_time()
    for log in HOSTILE:
        parse(log)
    assert time.process_time() - start < 5


_words = st.sampled_from(
    "PASSED FAILED SKIPPED ERROR XFAIL ok OK FAIL E F f test_a test_b a.py::t a.py::t[x y] a.py::t[/a/b] [3] [100%] "
    "- -- ... ____ sympy/a.py:test_a skipped 'why' \x1b[32m \x1b[0m MouseButton.LEFT FAIL: ERROR: (m.C) silenced). /x/ "
    "\t Testing against Django installed in Internal Server Error: System check identified no issues (0".split(" ")
)
_blank = st.sampled_from([" ", "  ", " ... ", "", "\t"])
_line = st.lists(st.tuples(_words, _blank), max_size=7).map(lambda parts: "".join(w + b for w, b in parts))
_chosen = st.sampled_from([line for log, _ in LOGS.values() for line in log.split("\n")])
logs = st.lists(st.one_of(_line, _chosen, st.just("ok")), max_size=25).map("\n".join)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_the_harness_reads_the_same(name):
    theirs = peer("swebench.harness.log_parsers")
    parse = theirs.PARSER_REGISTRY[f"parse_log_{name}"]

    @settings(deadline=None)
    @given(log=logs)
    def same(log):
        try:
            expected = parse(log, None)
        except IndexError:  # theirs trips over a line that is "ERROR:" and nothing else
            assert name == "django"
            return
        assert ours.parser_of("", f"parse_log_{name}")(log) == expected

    same()


@pytest.mark.slow
def test_every_name_of_the_harness_for_python_is_known():
    theirs = peer("swebench.harness.log_parsers.python")
    for name in (name for name in vars(theirs) if name.startswith("parse_log_")):
        ours.parser_of("", name)
    for repository, parser in theirs.MAP_REPO_TO_PARSER_PY.items():
        log = (
            LOGS["pytest_options"][0]
            + LOGS["pytest_v2"][0]
            + LOGS["sympy"][0]
            + LOGS["django"][0].replace("ERROR:\n", "")
        )
        assert ours.parser_of(repository)(log) == parser(log, None), repository
