"""Predictions are what the harness grades: one a line, for every instance, with exactly the patch."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from needs import peer

from manyturn.envs.benchmarks.swebench.predictions import PATCH_MARK, main, write_predictions
from manyturn.envs.benchmarks.swebench.rows import DataError

PATCH = f"diff --git a/x b/x\n+{PATCH_MARK}é\n"


def evaluation(folder, *rows):
    names = ("task", "member", "ending", "last")
    pq.write_table(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]), folder / "episodes.parquet"
    )
    return folder


ROWS = (
    ("a__b-1", 0, "completed", f"Submitted.{PATCH_MARK}{PATCH}"),
    ("a__b-1", 1, "completed", f"Submitted.{PATCH_MARK}other"),
    ("a__b-2", 0, "completed", f"Submitted, but no source file was changed.{PATCH_MARK}"),
    ("a__b-3", 0, "truncated", "some output"),
    ("a__b-4", 0, "infra_error", ""),
)


def test_one_line_an_instance_with_the_patch_to_the_byte(tmp_path):
    out = tmp_path / "predictions.jsonl"
    assert write_predictions(evaluation(tmp_path, *ROWS), out, "me") == (1, 2, 1)
    predictions = [json.loads(line) for line in out.read_text().splitlines()]
    assert predictions == [
        {"instance_id": "a__b-1", "model_name_or_path": "me", "model_patch": PATCH},
        {"instance_id": "a__b-2", "model_name_or_path": "me", "model_patch": ""},
        {"instance_id": "a__b-3", "model_name_or_path": "me", "model_patch": ""},
    ]


def test_another_attempt_is_another_file(tmp_path):
    out = tmp_path / "predictions.jsonl"
    write_predictions(evaluation(tmp_path, *ROWS), out, "me", attempt=1)
    assert json.loads(out.read_text())["model_patch"] == "other"
    with pytest.raises(DataError, match="no attempt 2"):
        write_predictions(tmp_path, out, "me", attempt=2)


@pytest.mark.slow
def test_the_harness_can_read_the_file(tmp_path):
    theirs = peer("swebench.harness.utils")
    out = tmp_path / "predictions.jsonl"
    write_predictions(evaluation(tmp_path, *ROWS), out, "me")
    predictions = theirs.get_predictions_from_file(str(out), "", "")
    assert (predictions[0]["instance_id"], predictions[0]["model_patch"]) == ("a__b-1", PATCH)


def test_what_is_no_evaluation_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"episodes\.parquet is no table"):
        write_predictions(tmp_path, tmp_path / "p.jsonl", "me")
    with pytest.raises(DataError, match="give it that ending"):
        write_predictions(tmp_path, tmp_path / "p.json", "me")
    monkeypatch.setattr("sys.argv", ["predictions", str(tmp_path), str(tmp_path / "p.jsonl"), "me"])
    with pytest.raises(SystemExit, match="no table"):
        main()


def test_the_command_writes_the_file(tmp_path, monkeypatch, capsys):
    evaluation(tmp_path, *ROWS)
    monkeypatch.setattr("sys.argv", ["predictions", str(tmp_path), str(tmp_path / "p.jsonl"), "me"])
    main()
    assert "1 patches, 2 empty, 1 errors left out" in capsys.readouterr().out
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 3
