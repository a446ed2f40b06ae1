"""No task that is passed by heart is trained on, unless it is asked for."""

from importlib.resources import files

import pytest
from tiny_library import CODE, tiny  # noqa: F401

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.env import Software
from manyturn.envs.software.mutation.candidates import Fault
from manyturn.envs.software.mutation.operators import edits
from manyturn.envs.software.tasks import lock_file
from manyturn.envs.software.tasks.lock_file import ours
from manyturn.envs.software.tasks.task_card import recount
from manyturn.envs.software.tasks.task_entry import Entry
from manyturn.envs.software.tasks.task_sources import LEARNT

SMOKE = ours().split("smoke")[:3]
PAY_A_LIE = {"sqlparse-ccde8f5f6c", "mistune-a438b1bf89", "sqlparse-3ce237fd3c"}


def file_of(folder, *shares):
    file = folder / "tasks.jsonl"
    entries = [entry._replace(reached=share) for entry, share in zip(SMOKE, shares, strict=False)]
    file.write_text(lock_file.save(entries), encoding="utf-8")
    return f"tasks:{file}"


def test_tasks_that_nothing_else_reaches_are_there_only_if_asked_for(engine, tmp_path):
    source = file_of(tmp_path, 0.0, 0.5, None)
    least, rest = SMOKE[0].id, {entry.id for entry in SMOKE[1:]}
    usual, every = Software(source=source), Software(source=source, unreached=True)
    assert {task.id for task in usual.tasks("smoke")} == rest
    tags = {task.id: task.tags for task in every.tasks("smoke")}
    assert set(tags) == {least, *rest} and tags[least][1:] == ("unreached",)
    with pytest.raises(KeyError, match=f"{least}.*unreached = true"):
        usual.reset(seed=0, options={"task": least})
    with pytest.raises(KeyError, match="has no task"):
        usual.reset(seed=0, options={"task": "nonsense"})
    with pytest.raises(NeedsSetup, match="unreached = true"):
        Software(source=file_of(tmp_path, 0.0))


def test_the_card_says_how_many_tasks_are_left_out(tmp_path):
    shares = [entry.reached for split in LEARNT for entry in ours().split(split)]
    text = files("manyturn.envs.software").joinpath("tasks.md").read_text(encoding="utf-8")
    said = [line for line in text.splitlines() if line.startswith(tuple(f"| `{split}`" for split in LEARNT))]
    assert sum(int(line.split("|")[-2]) for line in said) == shares.count(0) > 0
    copy = tmp_path / "tasks.md"
    copy.write_text(text)
    recount(tmp_path / "tasks.jsonl", ours().entries)
    assert copy.read_text() == text
    recount(tmp_path / "tasks.jsonl", [entry._replace(reached=1.0) for entry in ours().entries])
    changed = {line for line in said if int(line.split("|")[-2])}
    assert set(text.splitlines()) - set(copy.read_text().splitlines()) == changed


@pytest.mark.parametrize("split", LEARNT)
def test_none_of_our_tasks_that_was_measured_at_0_is_learnt_from(engine, split):
    try:
        usual, every = Software(split=split), Software(split=split, unreached=True)
    except NeedsSetup:
        pytest.skip("the sources of train's libraries are missing")
    left_out = {task.id for task in every.tasks(split)} - {task.id for task in usual.tasks(split)}
    assert left_out == {entry.id for entry in ours().split(split) if entry.reached == 0}
    assert split == "smoke" or left_out > PAY_A_LIE


@pytest.mark.parametrize("share", [1.5, -1, "all", [1]])
def test_a_share_that_is_none_is_refused(tmp_path, share):
    with pytest.raises(ValueError, match=r"reached is .*, not a share"):
        Software(source=file_of(tmp_path, share))


def test_the_command_measures_what_was_not_measured(engine, tiny, command, tmp_path):  # noqa: F811
    edit = next(edit for edit in edits(CODE) if edit.function == "largest" and edit.operator == "negation")
    faults = (("tiny.py", edit),)
    fails, passes = ("tests/test_tiny.py::test_largest[numbers0]",), ("tests/test_tiny.py::test_low",)
    symptoms = ((fails[0], "AssertionError"),)
    entry = Entry(Fault("tiny", faults, ()).id, "tiny", "train", "easy", faults, fails, passes, symptoms)
    file = tmp_path / "tasks.jsonl"
    file.write_text(lock_file.save([entry, entry._replace(id="tiny-known", reached=0.25)]), encoding="utf-8")
    told = f"{entry.id}: 1.0\n{file}: the fault of 0 of 2 tasks is not reached\n"
    assert command("tasks", "reach", file) == (0, told, "")
    assert [entry.reached for entry in lock_file.load(file).entries] == [1.0, 0.25]
