"""No grade may differ from that of the harness."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import peer

from manyturn.envs.benchmarks.swebench.log_grader import BAD, END, EXIT, START, Resolved, as_expected, grade
from manyturn.envs.benchmarks.swebench.log_parsers import pytest_log


def log_of(lines, exit_code=None, before="", after=""):
    code = "" if exit_code is None else f"{EXIT}: {exit_code}\n"
    return f"{before}{START}\n{lines}\n{END}\n{code}{after}"


def resolved(lines, f2p=("a",), p2p=("b",), **around):
    return grade(log_of(lines, **around), pytest_log, f2p, p2p)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("PASSED a\nPASSED b", Resolved.FULL),
        ("XFAIL a\nXFAIL b", Resolved.FULL),
        ("PASSED a\nSKIPPED b", Resolved.FULL),
        ("SKIPPED a\nPASSED b", Resolved.NO),
        ("PASSED b", Resolved.NO),
        ("PASSED a", Resolved.NO),
        ("PASSED a\nFAILED b", Resolved.NO),
        ("ERROR a\nPASSED b", Resolved.NO),
        ("FAILED a\nPASSED a\nPASSED b", Resolved.FULL),
    ],
)
def test_skipped_and_missing_tests(lines, expected):
    assert resolved(lines).resolved is expected


def test_some_of_the_tests_mended_is_partial_only_if_none_broke():
    assert resolved("PASSED a\nFAILED c\nPASSED b", f2p=("a", "c")).resolved is Resolved.PARTIAL
    assert resolved("PASSED a\nFAILED c\nFAILED b", f2p=("a", "c")).resolved is Resolved.NO


def test_an_id_that_was_cut_off_is_found_if_its_candidates_agree():
    assert resolved("PASSED t[log(x)]\nXFAIL t[log(y)]", f2p=("t[log(",), p2p=()).resolved is Resolved.FULL
    assert resolved("PASSED t[log(x)]\nFAILED t[log(y)]", f2p=("t[log(",), p2p=()).resolved is Resolved.NO
    assert resolved("PASSED test_long", f2p=("test_",), p2p=()).resolved is Resolved.NO


@pytest.mark.parametrize("mark", BAD)
def test_a_log_with_a_mark_of_failure_is_invalid(mark):
    assert not resolved(f"PASSED a\nPASSED b\n{mark}").valid


def test_markers_must_be_there_and_the_exit_code_must_be_explained():
    assert not grade("PASSED a\nPASSED b", pytest_log, ("a",), ("b",)).valid
    assert resolved("PASSED a\nPASSED b", exit_code=0).resolved is Resolved.FULL
    assert not resolved("PASSED a\nPASSED b", exit_code=1).valid
    assert resolved("PASSED a\nPASSED b\nFAILED c", exit_code=1).resolved is Resolved.FULL


def test_a_printed_exit_code_does_not_stand_for_the_real_one():
    assert not resolved(f"PASSED a\nPASSED b\n{EXIT}: 0", exit_code=1).valid


def test_results_outside_of_the_markers_count_only_if_there_are_none_inside():
    assert resolved("", after="PASSED a\nPASSED b\n").resolved is Resolved.FULL
    assert resolved("PASSED a\nFAILED b", after="PASSED b\n").resolved is Resolved.NO


def test_r2e_gym_wants_exactly_the_expected_outcomes():
    log = "x\n=== short test summary info ===\nPASSED r/t.py::C::a\n\x1b[31mFAILED\x1b[0m r/t.py::b - no\n=== end ==="
    assert as_expected(log, {"C.a": "PASSED", "b": "FAILED"})
    assert as_expected(log, {"\x1b[1mC.a": "PASSED", "b - other words": "FAILED"})
    assert not as_expected(log, {"C.a": "PASSED"})
    assert not as_expected(log, {"C.a": "PASSED", "b": "PASSED"})
    assert not as_expected(log.replace("FAILED", "PASSED"), {"C.a": "PASSED", "b": "FAILED"})
    assert not as_expected("PASSED r/t.py::C::a\nFAILED r/t.py::b", {"C.a": "PASSED", "b": "FAILED"})


_ids = st.sampled_from(["a", "b", "t[x]", "t[y", "t[", "t[/a/b]", "test_a (m.C)", "test_b"])
_status = st.sampled_from(["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "XPASS", "PASSEDX"])
_result = st.one_of(
    st.tuples(_status, _ids).map(lambda pair: f"{pair[0]} {pair[1]}"),
    st.tuples(_ids, st.sampled_from(["... ok", "... FAIL", "... ERROR", "... skipped 'x'", "ok", "F", "PASSED"])).map(
        " ".join
    ),
    st.sampled_from(["", "noise\r", "\x1b[32mPASSED\x1b[0m a", *BAD]),
)
_weighted = st.lists(_result, max_size=10).map("\n".join)
_logs = st.builds(
    lambda before, lines, after, code, marks: (
        log_of(lines, code, before, after) if marks == 2 else "\n".join((before, START * marks, lines, after))
    ),
    *(st.one_of(st.just(""), _weighted), _weighted, st.one_of(st.just(""), _weighted)),
    st.sampled_from([None, 0, 1, -9]),
    st.sampled_from([0, 1, 2, 2, 2, 2, 2]),
)
_lists = st.lists(_ids, max_size=3, unique=True).map(tuple)
_parsers = ("pytest", "pytest_options", "pytest_v2", "django", "sympy", "seaborn", "matplotlib")


@pytest.fixture
def their_report(tmp_path):
    theirs = peer("swebench.harness.grading")
    path = tmp_path / "log"

    def report(log, parser, f2p, p2p):
        path.write_bytes(log.encode())
        spec = SimpleNamespace(
            instance_id="i",
            log_parser=parser,
            eval_type="pass_and_fail",
            FAIL_TO_PASS=list(f2p),
            PASS_TO_PASS=list(p2p),
        )
        return theirs.get_eval_report(spec, {"instance_id": "i", "model_patch": "x"}, str(path), True)["i"]

    return report


@pytest.mark.slow
@pytest.mark.parametrize("parser", [f"parse_log_{name}" for name in _parsers])
def test_the_harness_reports_the_same(parser, their_report):
    from manyturn.envs.benchmarks.swebench.log_parsers import parser_of

    @settings(deadline=None)
    @given(log=_logs, f2p=_lists.filter(bool), p2p=_lists)
    def same(log, f2p, p2p):
        theirs = their_report(log, parser, f2p, p2p)
        mine = grade(log, parser_of("", parser), f2p, p2p)
        assert (mine.resolved is Resolved.FULL) == theirs["resolved"]
        assert mine.valid == theirs["patch_successfully_applied"]
        if mine.valid:
            tests = theirs["tests_status"].values()
            assert sorted(mine.failing) == sorted(test for part in tests for test in part["failure"])

    same()


@pytest.mark.slow
def test_the_harness_reports_the_same_on_whole_logs(their_report, golden_logs):
    """The recorded verdicts are the harness's own."""
    for case in golden_logs:
        theirs = their_report(case["log"], case["parser"], case["fail_to_pass"], case["pass_to_pass"])
        assert theirs["resolved"] == case["resolved"], case["name"]


def test_recorded_verdicts_of_the_harness_come_out(golden_logs):
    from manyturn.envs.benchmarks.swebench.log_parsers import parser_of

    for case in golden_logs:
        mine = grade(case["log"], parser_of("", case["parser"]), case["fail_to_pass"], case["pass_to_pass"])
        assert (mine.resolved is Resolved.FULL, mine.valid) == (case["resolved"], case["valid"]), case["name"]
        assert sorted(mine.failing) == case["failing"], case["name"]


@pytest.fixture
def golden_logs(request):
    return json.loads((request.path.parent / "verdicts.json").read_text())
