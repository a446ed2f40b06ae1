import json

import pytest
from local_sandbox import LocalSandbox
from tiny_library import CODE, tiny  # noqa: F401

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.mutation import operators
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import tree
from manyturn.envs.software.tasks import lock_file, task_file_builder
from manyturn.envs.software.tasks.task_entry import problem


@pytest.fixture
def made_here(tiny, monkeypatch):  # noqa: F811
    """Faults are tried by processes of this machine."""
    monkeypatch.setattr(task_file_builder, "DockerSandbox", lambda engine: LocalSandbox())
    monkeypatch.setattr("manyturn.envs.software.mutation.fault_validation.RUNS", 1)


@pytest.mark.slow
def test_an_interrupted_search_ends_as_one_that_was_not(made_here, tmp_path):
    whole, parts, seen = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl", []
    entries = task_file_builder.make(["tiny"], whole, 5, 0, seen.append)

    def interrupted(found):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            task_file_builder.make(["tiny"], parts, 5, 0, interrupted)
    journal = tmp_path / "parts.jsonl.journal"
    journal.write_text(journal.read_text(encoding="utf-8") + '{"library": "ti', encoding="utf-8")  # cut off
    rest: list = []
    assert task_file_builder.make(["tiny"], parts, 5, 0, rest.append) == entries
    assert parts.read_bytes() == whole.read_bytes() and len(rest) == len(seen) - 2
    check_file(whole, entries)
    check_card(whole.with_suffix(".md").read_text(encoding="utf-8"), entries, seen)


def check_file(file, entries):
    known = lock_file.load(file)
    assert list(known.entries) == entries and len(entries) == 5
    assert [entry.difficulty for entry in entries].count("hard") == 1
    for entry in entries:
        given = problem(entry)
        assert given.files["tiny.py"] != CODE and given.fix == {"tiny.py": CODE}
        assert not set(given.fail_to_pass) & set(given.pass_to_pass)
        assert set(given.tests) == {"pytest.ini", "tests/test_tiny.py"}


def check_card(text, entries, seen):
    assert text.startswith("# 5 software tasks of 1 libraries\n")
    assert f"| tiny 1.0 | MIT |  | 13 | 5 | {len(seen)} |" in text
    used = sum(len(entry.edits) for entry in entries)
    rows = [
        line.split(" | ")
        for line in text.splitlines()
        if line.removeprefix("| ").split(" | ")[0] in operators.OPERATORS
    ]
    assert sum(int(row[1]) for row in rows) == used


def test_a_journal_of_another_seed_or_release_is_refused(made_here, tmp_path):
    out = tmp_path / "tasks.jsonl"
    journal = tmp_path / "tasks.jsonl.journal"
    journal.write_text('{"seed":1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="another search"):
        task_file_builder.make(["tiny"], out, 1, 0, print)
    record = {"baseline": "tiny==0.9", "steady": [], "calls": {}}
    journal.write_text('{"seed":0}\n' + json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"is of tiny==0.9"):
        task_file_builder.make(["tiny"], out, 1, 0, print)


def test_what_is_missing_is_said_before_anything_is_started(tiny, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(task_file_builder, "DockerSandbox", lambda engine: pytest.fail("a container was made"))
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "empty"))
    with pytest.raises(NeedsSetup, match=r"tiny are missing: run .manyturn data software. once"):
        task_file_builder.make(["tiny"], tmp_path / "tasks.jsonl", 1, 0, print)
    with pytest.raises(ValueError, match="no library nothing"):
        task_file_builder.make(["nothing"], tmp_path / "tasks.jsonl", 1, 0, print)
    assert list(tmp_path.glob("tasks*")) == []


def test_a_library_whose_tests_do_not_pass_is_an_error_not_a_file(made_here, tmp_path, monkeypatch):
    files = dict(tree(library("tiny"))) | {"tiny.py": b"raise ImportError\n"}
    for module in ("testing.library_test_runner", "mutation.fault_validation", "mutation.candidates"):
        monkeypatch.setattr(f"manyturn.envs.software.{module}.tree", lambda known: files)
    with pytest.raises(RuntimeError, match=r"no test of tiny==1.0 passes"):
        task_file_builder.make(["tiny"], tmp_path / "tasks.jsonl", 1, 0, print)
    assert not (tmp_path / "tasks.jsonl").exists()
