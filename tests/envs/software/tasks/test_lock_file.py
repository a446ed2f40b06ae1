"""The tasks that come along are what they are said to be, as far as that can be seen without running them."""

import json
from collections import Counter

import pytest

from manyturn.envs.software.mutation.candidates import SPLITS, Fault, split_of
from manyturn.envs.software.mutation.fault_validation import MOST_BROKEN
from manyturn.envs.software.mutation.operators import OPERATORS, edits
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import sha256
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.task_entry import DIFFICULTIES, problem
from manyturn.envs.software.tasks.task_sources import problems_of

OURS = lock_file.ours()
LEAST = {"train": 300, "test": 60, "test_functions": 60, "validation": 15, "smoke": 12}


RELEASES = [name if name == "networkx" else pytest.param(name, marks=pytest.mark.slow) for name in OURS.releases]


def test_every_split_is_as_large_as_it_was_promised():
    sizes = Counter(entry.split for entry in OURS.entries)
    assert {split: sizes[split] for split in SPLITS if sizes[split] < LEAST[split]} == {}
    assert {entry.difficulty for entry in OURS.entries} == set(DIFFICULTIES)
    assert sum(len(OURS.split(split)) for split in SPLITS) == len(OURS.entries)


def test_no_two_splits_share_a_function_nor_testing_and_training_a_library():
    splits: dict[tuple[str, str, str], set[str]] = {}
    for entry in OURS.entries:
        for path, edit in entry.edits:
            splits.setdefault((entry.library, path, edit.function.partition(".<locals>")[0]), set()).add(entry.split)
            assert split_of(library(entry.library), path, edit.function) == entry.split
    assert all(len(found) == 1 for found in splits.values())
    libraries = {split: {entry.library for entry in OURS.split(split)} for split in SPLITS}
    assert libraries["test"].isdisjoint(libraries["train"] | libraries["validation"] | libraries["test_functions"])
    assert libraries["smoke"] == {"networkx"}


def test_ids_follow_from_the_edits_and_no_problem_comes_twice():
    ids = [entry.id for entry in OURS.entries]
    assert len(set(ids)) == len(ids)
    assert ids == [Fault(entry.library, entry.edits, ()).id for entry in OURS.entries]
    alike = Counter((e.library, frozenset((p, x.function) for p, x in e.edits), e.fail_to_pass) for e in OURS.entries)
    assert alike.most_common(1)[0][1] == 1


def test_tests_that_fail_are_some_and_few_and_none_of_those_that_pass():
    for entry in OURS.entries:
        fails, passes = set(entry.fail_to_pass), set(entry.pass_to_pass)
        assert fails and passes and not fails & passes
        assert len(fails) <= MOST_BROKEN * (len(fails) + len(passes)) + 1
        assert len(entry.symptoms) == len(entry.edits) and {test for test, _ in entry.symptoms} <= fails


def test_difficulty_is_a_matter_of_what_is_edited_and_told():
    for entry in OURS.entries:
        assert (len(entry.edits) > 1) == (entry.difficulty == "hard")
        assert entry.difficulty != "easy" or entry.edits[0][1].pieces


@pytest.mark.parametrize("name", RELEASES)
def test_files_are_those_that_were_edited(name, sources):
    files = sources(name)
    assert {path: sha256(files[path]) for path in OURS.releases[name].files} == OURS.releases[name].files


@pytest.mark.parametrize("name", RELEASES)
def test_a_problem_differs_from_the_release_in_what_counts_and_is_mended_by_its_fix(name, sources):
    files, known = sources(name), library(name)
    for entry in [entry for entry in OURS.entries if entry.library == name]:
        given = problem(entry)
        assert dict(given.files) | dict(given.fix) == dict(files)
        assert {path for path in files if given.files[path] != files[path]} == {path for path, _ in entry.edits}
        assert all(given.counts(path) for path in given.fix)
        assert not any(given.counts(path) for path in given.tests)
        assert {test.partition("::")[0] for test in given.fail_to_pass + given.pass_to_pass} <= set(given.tests)
        assert known.version in given.statement and entry.library in given.statement


@pytest.mark.parametrize("name", RELEASES)
def test_operators_still_make_the_edits_of_the_tasks(name, sources):
    files = sources(name)
    made = {path: set(edits(files[path])) for path in OURS.releases[name].files}
    assert all(edit in made[path] for e in OURS.entries if e.library == name for path, edit in e.edits)


def test_the_file_is_small_and_holds_no_source():
    text = lock_file.files("manyturn.envs.software").joinpath("tasks.jsonl").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    for entry in OURS.entries:
        for _, edit in entry.edits:
            assert edit.operator in OPERATORS
            ours = [piece for piece in edit.pieces if isinstance(piece, str)]
            assert all(len(piece) <= 12 or (edit.operator == "variable" and piece.isidentifier()) for piece in ours)


def test_what_is_written_comes_back(tmp_path):
    smoke = OURS.split("smoke")
    file = tmp_path / "tasks.jsonl"
    file.write_text(lock_file.save(smoke), encoding="utf-8")
    assert list(lock_file.load(file).entries) == smoke


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0.1"}, r"of networkx 0.1, but the pinned release is .*manyturn tasks software"),
        ({"format": 99}, "line 1"),
        ({"release": "requests"}, "no library requests"),
        ({"tests": []}, "line 1"),
    ],
)
def test_a_file_of_another_release_or_kind_is_refused_in_one_line(tmp_path, change, message):
    head, *tasks = lock_file.save(OURS.split("smoke")).splitlines()
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join([json.dumps(json.loads(head) | change), *tasks]), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        lock_file.load(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"library":"networkx"}', "7"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    file = tmp_path / "tasks.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="no file of software tasks, line 1"):
        lock_file.load(file)


def test_tasks_from_a_users_file_are_played_and_of_one_difficulty_if_asked(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text(lock_file.save(OURS.split("smoke")[:5]))
    [(split, tasks)] = problems_of(f"tasks:{file}").tasks.items()
    assert split == "smoke" and {task.id for task in tasks} == {entry.id for entry in OURS.split("smoke")[:5]}
    levels = {task.difficulty for task in tasks}
    [some] = problems_of(f"tasks:{file}", levels.pop()).tasks.values()
    assert len(some) <= len(tasks) and len({task.difficulty for task in some}) == 1
