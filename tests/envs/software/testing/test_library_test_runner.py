import pytest
from local_sandbox import LocalSandbox
from tiny_library import CODE, tiny  # noqa: F401

from manyturn.containers.sandbox import SandboxLost
from manyturn.envs.software.testing.library_test_runner import Trials, Wanted

PATHS = ("tests/test_tiny.py",)


@pytest.fixture
def trials(tiny):  # noqa: F811
    with Trials(tiny, LocalSandbox) as found:
        yield found


def changed(old: bytes, new: bytes) -> dict[str, bytes]:
    assert CODE.count(old) == 1
    return {"tiny.py": CODE.replace(old, new)}


def test_a_fault_is_gone_after_its_run_though_size_and_second_are_the_same(trials):
    broken = changed(b"number > found", b"number < found")
    outcomes = [len(trials.run(Wanted(PATHS), files)[0].passed()) for files in (broken, {}, broken, {})]
    assert outcomes == [9, 13, 9, 13]


def test_failures_have_messages_and_calls_have_names(trials):
    (run,) = trials.run(Wanted(PATHS, trace=("tiny.py",)), changed(b"self.value += number", b"self.value -= number"))
    assert run.messages["tests/test_tiny.py::test_total"].startswith("assert -5 == 5")
    assert run.calls["tests/test_tiny.py"] == [
        *("tiny.py:Total.__init__", "tiny.py:Total.add", "tiny.py:Total.mean", "tiny.py:clipped", "tiny.py:largest")
    ]


def test_runs_are_repeated_only_between_the_bounds(trials):
    broken = changed(b"number > found", b"number < found")
    assert len(trials.run(Wanted(PATHS, 3, between=(9, 9)), broken)) == 3
    assert len(trials.run(Wanted(PATHS, 3, between=(10, 12)), broken)) == 1
    assert len(trials.run(Wanted(PATHS, 3, between=(0, 8)), broken)) == 1


def test_every_run_is_a_process_of_its_own(trials):
    counting = changed(b'"""Numbers."""', b"import sys\nsys.seen = getattr(sys, 'seen', 0) + 1\nassert sys.seen == 1")
    assert [len(run.passed()) for run in trials.run(Wanted(PATHS, 3), counting)] == [13] * 3


def test_a_run_that_hangs_ends_at_its_deadline_and_the_next_one_works(trials):
    hanging = changed(b"found = number", b"while True: pass")
    (hung,) = trials.run(Wanted(PATHS, 3, seconds=2.0, between=(1, 12)), hanging)
    assert hung.timed_out and not hung.outcomes and 2.0 <= hung.seconds < 4.0
    assert len(trials.run(Wanted(PATHS), {})[0].passed()) == 13


@pytest.mark.parametrize("end", [b"import os; os._exit(0)", b"import os; os.kill(os.getpid(), 9)", b"raise SystemExit"])
def test_code_that_ends_the_process_is_no_success(trials, end):
    runs = trials.run(Wanted(PATHS, 3, between=(1, 12)), changed(b"return found", end))
    assert all(not run.timed_out and len(run.passed()) <= 9 for run in runs)


@pytest.mark.parametrize(("lost", "passed"), [(1, [13]), (2, [0])])
def test_a_lost_container_is_replaced_but_not_for_ever(tiny, lost, passed):  # noqa: F811
    made = []

    class Lost(LocalSandbox):
        def run(self, script, **options):
            if len(made) <= lost and "compileall" not in script:
                raise SandboxLost("gone")
            return super().run(script, **options)

    def make():
        made.append(Lost())
        return made[-1]

    with Trials(tiny, make) as trials:
        assert [len(run.passed()) for run in trials.run(Wanted(PATHS), {})] == passed
        assert len(trials.run(Wanted(PATHS), {})[0].passed()) == 13
    assert len(made) == lost + 1 and not any(sandbox.folder.exists() for sandbox in made)
