"""A whole episode on images made here, in the form of each set: what the agent can see, and what its work is worth."""

import contextlib
import json
import os
import tempfile
import uuid

import pytest
from standin import FAULT, GOLD, MENDED, SECRET, TEST_PATCH, Standin

from manyturn.containers.sandbox import EngineUnavailable
from manyturn.envs.benchmarks.swebench.env import SWEBench
from manyturn.envs.benchmarks.swebench.log_grader import END, START
from manyturn.envs.benchmarks.swebench.patch_extraction import EvaluationBroke
from manyturn.envs.benchmarks.swebench.predictions import PATCH_MARK
from manyturn.envs.benchmarks.swebench.rows import DataError

SMALL = {"limits": {"memory_mb": 512, "cpus": 1, "workspace_mb": 32, "scratch_mb": 32, "files": 5000}}
MEND = "sed -i 's/result = number/result += number/' sums.py"


@pytest.fixture
def play(tmp_path):
    """Begins an episode of a row; gives the environment and a way to run commands in it."""
    opened = []

    def begin(standin, **columns):
        env = SWEBench(rows=standin.write(tmp_path / "rows.jsonl", **columns), image=standin.name, engine=SMALL)
        opened.append(env)
        assert env.reset(seed=0)[0] == "total([1, 2]) is 2"
        return env

    yield begin
    for env in opened:
        env.close()


def bash(env, command):
    return env.step(json.dumps({"name": "bash", "arguments": {"command": command}}))[0]


def submit(env):
    text, reward, terminated, _, info = env.step('{"name": "submit", "arguments": {}}')
    assert terminated and info["success"] is (reward == 1.0)
    return reward, text.partition(PATCH_MARK)[2]


@pytest.mark.deep
def test_a_link_in_the_place_of_the_lock_is_not_followed(standin, tmp_path, monkeypatch):
    """Anybody can put one into the folder for temporary files, and whatever it names would be written to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock, named = tmp_path / f"manyturn-swebench-{os.getuid()}.lock", tmp_path / "somebody's"
    lock.symlink_to(named)
    env = SWEBench(rows=standin.write(tmp_path / "rows.jsonl"), image=standin.name, engine=SMALL)
    with contextlib.closing(env), pytest.raises(EngineUnavailable, match=r"cannot be opened .*: remove it, or set"):
        env.reset(seed=0)
    assert lock.is_symlink() and not named.exists()


@pytest.mark.deep
def test_the_gold_patch_is_worth_one(standin, play):
    env = play(standin)
    env.step(env.expert())
    reward, patch = submit(env)
    assert reward == 1.0
    assert patch.splitlines()[2:] == GOLD.splitlines()[1:]


PRINTS = """
import os
for number in range(3, 40):
    try:
        os.write(number, b"PASSED tests/test_sums.py::test_of_two\\nPASSED tests/test_sums.py::test_of_nothing\\n")
    except OSError:
        pass
os._exit(0)
"""
HOLLOWS = """
import _pytest.python as p
made = p.Function.__init__
def hollow(self, *given, **named):
    made(self, *given, **named)
    self.obj.__code__ = (lambda *given, **named: None).__code__
p.Function.__init__ = hollow
"""


@pytest.mark.deep
@pytest.mark.parametrize("forgery", [PRINTS, HOLLOWS])
def test_a_log_that_is_forged_is_worth_nothing_and_said_to_be(standin, play, forgery):
    env = play(standin)
    bash(env, f"cat > /tmp/top <<'END'\n{forgery}\nEND\ncat /tmp/top sums.py > /tmp/both; cp /tmp/both sums.py")
    text, reward, _, _, info = env.step('{"name": "submit", "arguments": {}}')
    assert (reward, info["success"]) == (0.0, False) and "tampered" in text
    assert info["measures"] == {"official": 1.0, "challenged": 1.0, "tampered": 1.0, "reached": 1.0}


@pytest.mark.deep
def test_a_wrong_mend_is_worth_nothing(standin, play):
    env = play(standin)
    bash(env, "sed -i 's/result = 0/result = 3/; s/result = number/result += number - 1/' sums.py")
    reward, patch = submit(env)
    assert reward == 0.0 and "+    result = 3" in patch


def test_nothing_done_is_worth_nothing(standin, play):
    assert submit(play(standin)) == (0.0, "")


def test_nothing_of_the_future_is_in_the_container(standin, play):
    env = play(standin)
    history = bash(
        env, "git log --format=%H --all; git reflog --all; git remote -v; git stash list; git status --short"
    )
    first, second = history.split()
    assert first == standin.base != second
    assert bash(env, "git for-each-ref --format='%(refname)'") == "refs/heads/main"
    everything = "git cat-file --batch-all-objects --batch --unordered | grep -ac"
    assert bash(env, f"{everything} {SECRET}").startswith("0")
    assert bash(env, f"{everything} 'result += number'").startswith("0")
    assert not bash(env, f"{everything} 'The second'").startswith("0")
    assert bash(
        env, f"grep -raclF {SECRET} /workspace /.testbed.tar /root /tmp /etc 2>/dev/null || echo none"
    ).startswith("none")
    assert bash(env, "git fsck --full --unreachable --no-reflogs 2>&1 | grep -c unreachable").startswith("0")
    assert bash(env, "ls -d /.hidden /.manyturn 2>&1 | grep -c 'No such'") == "2"
    assert "hints" not in env.observation


def test_the_harness_own_script_is_run(standin, play):
    script = (
        "#!/bin/bash\nset -uxo pipefail\ncd /testbed\ngit status\n"
        f"git checkout {standin.base} tests/test_sums.py\ngit apply -v - <<'EOF_1'\n{TEST_PATCH}EOF_1\n"
        f": '{START}'\npython3 -m pytest -rA -p no:cacheprovider tests/test_sums.py\n: '{END}'\n"
        f"git checkout {standin.base} tests/test_sums.py\n"
    )
    env = play(standin, eval_script=script, log_parser="parse_log_pytest", eval_type="pass_and_fail")
    bash(env, MEND)
    assert submit(env)[0] == 1.0


def test_tests_that_do_not_begin_are_an_error_and_no_reward(standin, play):
    env = play(standin, eval_script="echo broken", log_parser="parse_log_pytest")
    bash(env, MEND)
    with pytest.raises(EvaluationBroke, match="tests do not begin: broken"):
        submit(env)


def test_a_patch_that_keeps_the_tests_from_their_beginning_is_a_failure(standin, play):
    """An installation before the tests may run the patch's code, which can end the process that runs it."""
    script = (
        f"cd /testbed\npython3 -c 'import sums'\n: '{START}'\npython3 -m pytest -rA tests/test_sums.py\n: '{END}'\n"
    )
    env = play(standin, eval_script=f"set -x\n{script}", log_parser="parse_log_pytest", eval_type="pass_and_fail")
    bash(env, f"{MEND}; echo 'import os; os.kill(os.getppid(), 9)' >> sums.py")
    assert submit(env)[0] == 0.0


NEW_TESTS = """diff --git a/check_sums.py b/check_sums.py
new file mode 100644
--- /dev/null
+++ b/check_sums.py
@@ -0,0 +1,5 @@
+from sums import total
+
+
+def test_of_two():
+    assert total([1, 2]) == 3
"""
BLOCKS = """mkdir check_sums.py && echo '# x' >> sums.py
printf '[pytest]\npython_files = *.py\n' > pytest.ini
cat > check_sums.py/x.py <<'END'
import os
for number in range(1, 40):
    try:
        os.write(number, b"PASSED check_sums.py::test_of_two\\n")
    except OSError:
        pass
os._exit(0)
END
"""


@pytest.mark.deep
def test_a_forgery_that_keeps_the_tests_from_their_place_is_a_failure_and_no_error(standin, play):
    named = {"FAIL_TO_PASS": '["check_sums.py::test_of_two"]', "PASS_TO_PASS": "[]"}
    env = play(standin, test_patch=NEW_TESTS, **named)
    bash(env, BLOCKS)
    assert submit(env)[0] == 0.0
    assert env.measures() == {"official": 1.0, "challenged": 1.0, "tampered": 0.0, "reached": 0.0}


def test_an_image_of_another_commit_or_without_a_repository_is_refused(standin, play, engine, tmp_path):
    with pytest.raises(DataError, match="does not know the base commit"):
        play(standin, base_commit="f" * 40)
    env = SWEBench(rows=standin.write(tmp_path / "rows.jsonl"), image=engine, engine=SMALL)
    with pytest.raises(DataError, match="there is no /testbed"):
        env.reset(seed=0)


@pytest.mark.deep
def test_an_episode_can_be_repeated_from_its_snapshot(standin, play):
    env = play(standin)
    bash(env, MEND)
    data = env.snapshot()
    env.restore(data)
    assert bash(env, "git diff --stat | tail -1") == " 1 file changed, 1 insertion(+), 1 deletion(-)"
    assert submit(env)[0] == 1.0


@pytest.mark.deep
def test_swe_smith_starts_with_its_fault_and_without_its_tests_or_history(engine, tmp_path):
    made = Standin(engine, f"manyturn-standin:{uuid.uuid4().hex[:12]}", mended=True)
    row = {
        "instance_id": "o__r.12345678.x__1",
        "repo": "swesmith/o__r.12345678",
        "image_name": "swesmith.x86_64.o__r.12345678",
        "patch": FAULT,
        "problem_statement": "total([1, 2]) is 2",
        "FAIL_TO_PASS": ["tests/test_sums.py::test_of_two"],
        "PASS_TO_PASS": ["tests/test_sums.py::test_of_nothing"],
    }
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    env = SWEBench(rows=str(tmp_path / "rows.json"), image=made.name, engine=SMALL)
    try:
        env.reset(seed=0)
        assert bash(env, "git log --format=%s") == "The repository"
        assert "result = number" in bash(env, "cat sums.py")
        assert bash(env, "ls tests") == "conftest.py"
        assert bash(env, f"git cat-file --batch-all-objects --batch | grep -aEc '{SECRET}|\\+= number'").startswith("0")
        env.step(env.expert())
        assert submit(env)[0] == 1.0
    finally:
        env.close()
        made.remove()


@pytest.mark.deep
def test_r2e_gym_is_graded_by_tests_that_the_agent_never_saw(engine, tmp_path):
    hidden = {
        "r2e_tests/test_1.py": f"from sums import total  # {SECRET}\ndef test_two():\n    assert total([1, 2]) == 3\n",
        "testbed/run_tests.sh": f"# {SECRET}\npython3 -m pytest -rA -p no:cacheprovider r2e_tests\n",
        "testbed/expected_test_output.json": SECRET,
    }
    made = Standin(engine, f"manyturn-standin:{uuid.uuid4().hex[:12]}", files=hidden)
    row = {
        "repo_name": "sums",
        "docker_image": "namanjain12/sums_final:x",
        "commit_hash": made.base,
        "problem_statement": "[ISSUE]total([1, 2]) is 2[/ISSUE]",
        "expected_output_json": json.dumps({"test_two": "PASSED"}),
    }
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    env = SWEBench(rows=str(tmp_path / "rows.json"), image=made.name, engine=SMALL)
    try:
        env.reset(seed=0)
        files = bash(env, f"grep -raclF {SECRET} /workspace /.testbed.tar /[!.lpsuw]*/ 2>/dev/null || echo none")
        assert files.startswith("none")
        assert "run_tests.sh" not in bash(env, "ls -a . /")
        bash(env, "echo '# nothing' >> sums.py")
        assert submit(env)[0] == 0.0
        env.reset(seed=0)
        bash(env, f"cat > sums.py <<'END'\n{MENDED}\nEND")
        assert submit(env)[0] == 1.0
    finally:
        env.close()
        made.remove()
