"""Drills are many, distinct, and short to mend."""

from manyturn.envs.software.tasks.drills import FUNCTIONS, Drills
from manyturn.envs.software.workspace.call_shorthand import line_of
from manyturn.envs.software.workspace.expert import next_edit


def test_drills_are_many_and_in_one_split_each() -> None:
    tasks = [task for some in Drills().tasks.values() for task in some]
    assert len(tasks) == len({task.id for task in tasks}) == len({task.content for task in tasks}) == 720
    assert all(len(some) > 50 for some in Drills().tasks.values())


def test_one_short_line_mends_a_drill() -> None:
    drills = Drills()
    for task in [task for some in drills.tasks.values() for task in some]:
        problem = drills.problem(task)
        edit = next_edit(problem.fix, problem.files.get)
        assert edit is not None and "\n" not in edit.old + edit.new
        (content,) = problem.fix.values()
        assert problem.files[edit.path].decode().replace(edit.old, edit.new).encode() == content
        assert len(line_of("edit", path=edit.path, old=edit.old, new=edit.new)) < 80
        assert edit.old in problem.statement


def test_every_fault_fails_its_own_test_and_no_true_sign_does() -> None:
    for function in FUNCTIONS:
        for sign in (function.sign, *function.faults):
            names: dict[str, object] = {}
            exec(function.text(sign), names)  # noqa: S102 # a text of ours
            try:
                right = str(eval(function.call, names)) == function.result  # noqa: S307
            except (IndexError, TypeError):
                right = False
            assert right == (sign == function.sign), (function.name, sign)
