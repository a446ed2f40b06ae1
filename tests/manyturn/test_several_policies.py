"""Several policies in one call, and policies in a file: one table, a folder of each, nothing lost or mixed up."""

import json
import signal
import subprocess
import sys
import time

import pytest

from manyturn.agents.evaluation.paired_comparison import compare, read_evaluation

FILE = """
import random

def first(observation, info):
    return info["admissible"][0]

class Chance:
    def __init__(self):
        self.rng = None

    def act(self, observation, info):
        self.rng = self.rng or random.Random(info["seed"])
        return self.rng.choice(info["admissible"])

def broken(observation, info):
    return info["commands"][0]
"""
SLOW = """
import time

def slow(observation, info):
    time.sleep(0.1)
    return info["admissible"][0]
"""
MAZE = ("--env", "manyturn/Maze-v0", "--limit", 6)


@pytest.fixture
def policies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pol.py").write_text(FILE)


def test_one_call_gives_one_table_and_folders_to_compare(command, policies, tmp_path):
    words = ("expert", "random", "pol.py:first", "pol.py:Chance", *MAZE, "--out", "found")
    ended = command("evaluate", *words)
    assert ended.code == 0, ended.err
    _, table = ended.out.split("─\n")
    assert [row.split()[0] for row in table.splitlines()[:4]] == ["expert", "random", "pol.py:first", "pol.py:Chance"]
    folders = ["expert", "random", "pol.py-first", "pol.py-Chance"]
    found = compare([read_evaluation(tmp_path / "found" / folder) for folder in folders])
    assert found["policies"][0]["success"]["mean"] == 1 and not found["shared"] and not found["notes"]
    assert "manyturn compare found/random found/expert found/pol.py-first found/pol.py-Chance" in ended.out
    assert all((tmp_path / "found" / folder / "report.html").is_file() for folder in folders)

    times = {folder: (tmp_path / "found" / folder / "episodes.jsonl").stat().st_size for folder in folders}
    assert command("evaluate", *words).code == 0, "the same command finds everything done"
    assert times == {folder: (tmp_path / "found" / folder / "episodes.jsonl").stat().st_size for folder in folders}


def test_a_policy_whose_file_has_changed_is_not_continued_as_if_it_were_the_same(command, policies, tmp_path):
    assert command("evaluate", "pol.py:first", *MAZE, "--out", "found").code == 0
    (tmp_path / "pol.py").write_text(FILE.replace("[0]", "[-1]"))
    from manyturn.envs.contract.registration.env_registry import _module_of

    _module_of.cache_clear()  # as in another process
    refused = command("evaluate", "pol.py:first", *MAZE, "--out", "found")
    assert refused.code == 2 and "policy was pol.py:first, code " in refused.err


def test_an_error_in_a_policys_file_names_file_and_line(command, policies):
    line = 1 + FILE.splitlines().index('    return info["commands"][0]')
    ended = command("evaluate", "pol.py:broken", *MAZE)
    assert ended.code == 2
    assert (
        f"manyturn: pol.py, line {line}, in broken: the policy pol.py:broken raised KeyError: 'commands'" in ended.err
    )
    assert "manyturn check" not in ended.err


@pytest.mark.deep
def test_ctrl_c_is_heard_between_the_turns_of_a_policy_that_never_waits(policies, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    words = ("evaluate", "slow.py:slow", "--env", "manyturn/Maze-v0", "--limit", "90", "--out", "found")
    command = [sys.executable, "-P", "-m", "manyturn", *words]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, deadline = tmp_path / "found" / "episodes.jsonl", time.monotonic() + 60
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert "of 90 episodes; found keeps them, and the same command continues" in err


def test_options_reach_the_policies_that_they_concern(command, policies, tiny_run, tmp_path):
    env = ("--env", f"{tiny_run.parent}/doors.py:Doors", "--limit", 2, "--split", "validation")
    ended = command("evaluate", "random", tiny_run, *env, "--out", "found", "--sampling.temperature", "0")
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "found/random/summary.json").read_text())["sampling"] is None
    summaries = [json.loads(path.read_text()) for path in (tmp_path / "found").glob("*/summary.json")]
    assert sorted(str((one["sampling"] or {}).get("temperature")) for one in summaries) == ["0.0", "None"]
    # What a run earns is the world of all: each turn costs.
    assert {one["wrappers"][0]["name"] for one in summaries} == {"turn_cost"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("expert", "expert"), "expert is named twice"),
        (
            ("expert", "random", "--sampling.temperature", "0"),
            "--sampling.temperature has no effect: it concerns none of expert",
        ),
        (("expert", "pol.py:none"), "pol.py has no 'none'"),
        (("expert", "pol.py"), "pol.py is a file: name pol.py:POLICY"),
        (("pol.py:first", "pol.py-first"), "would share the folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_played(command, policies, tmp_path, words, told):
    options = [word for word in words if word.startswith("--") or word == "0"]
    names = [word for word in words if word not in options]
    refused = command("evaluate", *names, *MAZE, "--out", "found", *options)
    assert refused.code == 2 and told in refused.err and not (tmp_path / "found").exists()


def test_no_policy_is_played_where_the_folder_of_a_later_one_holds_other_settings(command, policies, tmp_path):
    assert command("evaluate", "random", *MAZE, "--out", "found/random", "--seed", 1).code == 0
    refused = command("evaluate", "expert", "random", *MAZE, "--out", "found")
    assert refused.code == 2 and "seed was 1 and is 0. Write to another folder" in refused.err
    assert not (tmp_path / "found/expert").exists()


def test_a_folder_of_one_evaluation_does_not_become_one_of_several(command, policies):
    assert command("evaluate", "expert", *MAZE, "--out", "found").code == 0
    refused = command("evaluate", "expert", "random", *MAZE, "--out", "found")
    assert refused.code == 2 and "found holds the evaluation of one policy" in refused.err
