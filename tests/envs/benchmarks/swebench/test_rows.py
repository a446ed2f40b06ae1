"""A row that is not what it should be ends in one line that says which, and never in a stack trace."""

import json

import pytest

from manyturn.envs.benchmarks.swebench import rows
from manyturn.envs.benchmarks.swebench.rows import DataError, load, row_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROW = {
    "repo": "astropy/astropy",
    "instance_id": "astropy__astropy-1",
    "base_commit": COMMIT,
    "patch": "diff --git a/x b/x\n",
    "test_patch": "diff --git a/t b/t\n",
    "problem_statement": "It breaks.",
    "hints_text": "Look there.",
    "version": "1",
    "FAIL_TO_PASS": '["t::a"]',
    "PASS_TO_PASS": '["t::b", "t::c"]',
    "environment_setup_commit": COMMIT,
}
V5 = {
    **ROW,
    "image": "swebench/x:latest",
    "eval_script": "x",
    "log_parser": "parse_log_astropy",
    "eval_type": "pass_and_fail",
}
GYM = {key: value for key, value in ROW.items() if key != "environment_setup_commit"}
GYM |= {"FAIL_TO_PASS": ["t::a"], "PASS_TO_PASS": []}
SMITH = {
    "instance_id": "o__r.12345678.func__1",
    "repo": "swesmith/o__r.12345678",
    "patch": "diff --git a/x b/x\n",
    "FAIL_TO_PASS": ["t.py::a"],
    "PASS_TO_PASS": ["t.py::b"],
    "image_name": "jyangballin/swesmith.x86_64.o_1776_r.12345678",
    "problem_statement": "It breaks.",
}
R2E = {
    "repo_name": "pillow",
    "docker_image": "namanjain12/pillow_final:abc",
    "commit_hash": COMMIT,
    "problem_statement": "Fix this.\n[ISSUE]\nIt breaks.\n[/ISSUE]",
    "expected_output_json": '{"T.a": "PASSED", "b": "FAILED"}',
}
REBENCH = {
    **GYM,
    "docker_image": "swerebench/sweb.eval.x86_64.o_1776_r-1",
    "install_config": {"test_cmd": "pytest -rA x", "log_parser": "parse_log_pytest", "install": None},
}


def test_each_set_is_told_from_the_others():
    kinds = [row_of(row, "here").family for row in (ROW, V5, GYM, SMITH, R2E, REBENCH)]
    assert kinds == [rows.SWEBENCH, rows.SWEBENCH, rows.SWEGYM, rows.SWESMITH, rows.R2EGYM, rows.REBENCH]


def test_what_a_row_says_is_kept_under_one_name():
    row = row_of(ROW, "here")
    assert (row.fail_to_pass, row.pass_to_pass) == (("t::a",), ("t::b", "t::c"))
    assert (row.gold, row.fault, row.commit) == (ROW["patch"], "", COMMIT)
    smith = row_of(SMITH, "here")
    assert (smith.gold, smith.fault, smith.commit) == ("", SMITH["patch"], "")
    r2e = row_of(R2E, "here")
    assert (r2e.instance, r2e.statement) == (f"pillow__{COMMIT}", "It breaks.")
    assert r2e.expected == {"T.a": "PASSED", "b": "FAILED"}
    rebench = row_of(REBENCH, "here")
    assert (rebench.command, rebench.log_parser) == ("pytest -rA x", "parse_log_pytest")


def test_json_json_lines_and_parquet_give_the_same_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    both = [ROW, {**ROW, "instance_id": "astropy__astropy-2"}]
    (tmp_path / "a.json").write_text(json.dumps(both))
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n\n" for row in both))
    pq.write_table(pa.Table.from_pylist(both), tmp_path / "a.parquet")
    assert load(tmp_path / "a.json") == load(tmp_path / "a.jsonl") == load(tmp_path / "a.parquet")
    assert [row.instance for row in load(tmp_path / "a.json")] == ["astropy__astropy-1", "astropy__astropy-2"]


def test_lists_and_structures_of_parquet_are_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([REBENCH]), tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet") == [row_of(REBENCH, "here")]


BAD = [
    ({**ROW, "instance_id": "../../etc/passwd"}, "instance_id"),
    ({**ROW, "instance_id": "-rf"}, "instance_id"),
    ({**ROW, "instance_id": 7}, "instance_id"),
    ({**ROW, "base_commit": "main; rm -rf /"}, "base_commit"),
    ({**ROW, "base_commit": "--upload-pack=x"}, "base_commit"),
    ({**ROW, "problem_statement": None}, "problem_statement"),
    ({**ROW, "problem_statement": "a\0b"}, "problem_statement"),
    ({**ROW, "problem_statement": "\ud800"}, "problem_statement"),
    ({**ROW, "FAIL_TO_PASS": "not json"}, "FAIL_TO_PASS"),
    ({**ROW, "FAIL_TO_PASS": "[" * 100_000}, "FAIL_TO_PASS"),
    ({**ROW, "FAIL_TO_PASS": []}, "FAIL_TO_PASS"),
    ({**ROW, "FAIL_TO_PASS": [1]}, "FAIL_TO_PASS"),
    ({**ROW, "PASS_TO_PASS": {"a": 1}}, "PASS_TO_PASS"),
    ({**ROW, "patch": ["x"]}, "patch"),
    ({**V5, "log_parser": "parse_log_karma"}, "log_parser"),
    ({**V5, "log_parser": "__class__"}, "log_parser"),
    ({**V5, "eval_type": "fail_only"}, "eval_type"),
    ({**SMITH, "patch": ""}, "patch"),
    ({**R2E, "expected_output_json": "[]"}, "expected_output_json"),
    ({**R2E, "expected_output_json": '{"a": 1}'}, "expected_output_json"),
    ({**R2E, "commit_hash": "x"}, "commit_hash"),
    ({**REBENCH, "install_config": "7"}, "install_config"),
    ("text", "not an object"),
    (None, "not an object"),
]


@pytest.mark.parametrize(("row", "named"), BAD, ids=range(len(BAD)))
def test_a_bad_row_is_named_in_one_line(row, named):
    with pytest.raises(DataError) as error:
        row_of(row, "rows.jsonl, row 3")
    text = str(error.value)
    assert "rows.jsonl, row 3" in text and named in text and "\n" not in text and len(text) < 400


@pytest.mark.parametrize("column", ["repo", "instance_id", "base_commit", "problem_statement", "FAIL_TO_PASS"])
def test_a_missing_column_is_named(column):
    row = {key: value for key, value in ROW.items() if key != column}
    with pytest.raises(DataError, match=f"{column} is missing"):
        row_of(row, "here")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"x"),
        ("a.json", b"{"),
        ("a.json", b"[" * 100_000),
        ("a.json", b"[]"),
        ("a.json", b"7"),
        ("a.jsonl", b"\xff\xfe\n"),
        ("a.jsonl", b"\n\n"),
        ("a.jsonl", b"null\n"),
        ("a.parquet", b"PAR1 and nothing else"),
        ("a.parquet", b""),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        load(tmp_path / name)
    assert "\n" not in str(error.value) and name in str(error.value)


def test_a_missing_file_and_a_doubled_row_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.jsonl"):
        load(tmp_path / "none.jsonl")
    (tmp_path / "a.json").write_text(json.dumps([ROW, ROW]))
    with pytest.raises(DataError, match="row 2: astropy__astropy-1 is there twice"):
        load(tmp_path / "a.json")


def test_a_huge_line_is_refused_without_being_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LARGEST_ROW", 1000)
    (tmp_path / "a.jsonl").write_text(json.dumps({**ROW, "patch": "x" * 2000}))
    with pytest.raises(DataError, match="line 1 has more than 1,000 bytes"):
        load(tmp_path / "a.jsonl")
