"""A suite that plays other tasks than its name says, hides what it left out, or begins again when it was killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

SLOW = """
import os
import time
from pathlib import Path

def slow(observation, info):
    if info["turn"] == 0:
        with Path("begun").open("a") as file:
            file.write(f"{info['task']} {len(info['instructions'])}\\n")
    time.sleep(0.05)
    return info["admissible"][0]
"""


def test_policies_stand_next_to_each_other_and_absent_data_is_named(command, small, stairs, monkeypatch, tmp_path):
    monkeypatch.setattr(stairs, "absent_files", True)
    refused = command("evaluate", "expert", "--suite", "small.json")
    assert refused.code == 2 and "the files of Stairs do not come along" in refused.err, (
        "stairs says that it needs none"
    )
    monkeypatch.setattr(stairs, "absent_files", False)
    found = command("evaluate", "expert", "random", "--suite", "small.json", "--repeats", 2, "--out", "found")
    assert found.code == 0, found.err
    expert, random = (
        json.loads((tmp_path / "found" / name / "suite.json").read_text()) for name in ("expert", "random")
    )
    assert expert["core"] == {
        "mean": 1.0,
        "ci_low": expert["core"]["ci_low"],
        "ci_high": 1.0,
        "n_tasks": 7,
        "n_episodes": 14,
    }
    assert expert["panels"]["roof"]["turns"] == 3.5 and expert["totals"]["episodes"] == 18 and not expert["skipped"]
    assert random["core"]["mean"] < 1 and random["suite_hash"] == expert["suite_hash"]
    [row, _] = [line.split() for line in found.out.splitlines() if line.startswith("stairs ")]
    assert row[:2] == ["stairs", "100.0%"] and all(len(line) <= 80 for line in found.out.splitlines() if "%" in line)
    assert (tmp_path / "found" / "expert" / "maze-easy" / "summary.json").is_file()


def test_a_panel_whose_data_is_absent_is_skipped_by_name_or_required(command, small, stairs, monkeypatch, tmp_path):
    words = ("evaluate", "expert", "--suite", "small.json", "--only", "roof", "--only", "maze")
    monkeypatch.setattr(stairs, "absent_files", True)
    found = command(*words)
    assert found.code == 0, found.err
    told = 'skipped roof: the files of Stairs do not come along: give data="FOLDER"'
    assert told in found.out and "core: unknown, since 1 of its 2 panels were not played" in found.out
    values = json.loads((tmp_path / "runs/suite-small/expert/suite.json").read_text())
    assert list(values["panels"]) == ["maze-easy"] and list(values["skipped"]) == ["roof"] and values["core"] is None
    required = command(*words, "--require", "data")
    assert required.code == 2 and "roof is required by --require data, but the files of Stairs" in required.err


@pytest.mark.parametrize(
    ("attribute", "value", "told"),
    [
        (
            "height",
            2,
            "stairs has changed since small was frozen: strangers/Stairs-v0/test/4: task 'test/0' is another",
        ),
        (
            "top",
            "The top!",
            "stairs has changed since small was frozen: strangers/Stairs-v0 has other rules, or answers",
        ),
        ("instructions", "Climb.", "stairs has changed since small was frozen: strangers/Stairs-v0 has other rules"),
        ("max_turns", 9, "stairs has changed since small was frozen: strangers/Stairs-v0 has other rules"),
    ],
)
def test_a_changed_task_word_or_rule_is_refused_before_anything_is_played(
    command, small, stairs, monkeypatch, tmp_path, attribute, value, told
):
    monkeypatch.setattr(stairs, attribute, value)
    for words in (("evaluate", "expert", "--suite"), ("suite", "verify")):
        refused = command(*words, "small.json")
        assert refused.code == 2 and told in refused.err and refused.err.count("\n") == 1
        assert "use manyturn 0.1.0, with which it was frozen, or freeze another suite" in refused.err
    assert not (tmp_path / "runs").exists()
    other = command("suite", "freeze", "plan.toml", "--out", "small.json")
    assert other.code == 2 and "small.json holds another suite, on which results may rest (it differs in" in other.err


def test_a_file_that_was_edited_is_refused(command, small):
    text = small.read_text()
    assert command("suite", "verify", "small.json").code == 0
    for before, after in (('"need": "data"', '"need": ""'), ('"test/1"', '"test/5"'), ("climb", "wait")):
        small.write_text(text.replace(before, after, 1))
        refused = command("evaluate", "expert", "--suite", "small.json")
        assert refused.code == 2 and "it was edited" in refused.err


@pytest.mark.parametrize("name", ["evil.py:Evil", "evil.py"])
def test_a_suites_file_starts_no_code(command, small, tmp_path, name):
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    from manyturn.suites.suite import Suite

    suite = Suite.load(small)
    text = suite.to_json().replace("strangers/Stairs-v0", name).replace(suite.hash, "HASH")
    small.write_text(text)
    told = command("suite", "verify", "small.json").err
    small.write_text(text.replace("HASH", told.split("give the hash ")[1].split(",")[0]))
    refused = command("evaluate", "expert", "--suite", "small.json")
    assert refused.code == 2 and f"names the environment {name}, which is a file, a folder or an address" in refused.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.deep
def test_a_suite_that_was_killed_continues_where_it_was(command, small, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    plan = (tmp_path / "plan.toml").read_text().replace("strangers/Stairs-v0", "manyturn/GuessNumber-v0")
    plan = plan.replace('split = "roof"\n', 'split = "validation"\n')
    (tmp_path / "plan.toml").write_text(plan)
    assert command("suite", "freeze", "plan.toml", "--out", "slow.json").code == 0
    words = [
        sys.executable,
        "-P",
        "-m",
        "manyturn",
        "evaluate",
        "slow.py:slow",
        "--suite",
        "slow.json",
        "--out",
        "found",
    ]

    def start():
        return subprocess.Popen(
            words, cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    begun, killed = tmp_path / "begun", start()
    until = time.monotonic() + 120
    while not begun.exists() or begun.read_text().count("\n") < 6:  # in the second panel
        assert killed.poll() is None and time.monotonic() < until, killed.communicate()
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    last = start()
    assert last.wait(timeout=240) == 0, last.communicate()
    last.communicate()
    tasks = begun.read_text().splitlines()
    assert len(set(tasks)) == 9 and len(tasks) <= 10, "no more than the open episode is played twice"
    values = json.loads((tmp_path / "found" / "suite.json").read_text())
    assert values["totals"]["episodes"] == 9 and values["policy"].startswith("slow.py:slow, code ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--suite v9", "unknown suite 'v9'"),
        ("--suite none.json", "there is no none.json: make it with manyturn suite freeze PLAN.toml --out none.json"),
        ("--suite small.json --only maze-esy", "unknown panel of small 'maze-esy'; did you mean 'maze-easy'?"),
        ("--suite small.json --env manyturn/Maze-v0", "a suite says which tasks are played: leave --env out"),
        ("--suite small.json --limit 2", "leave --limit out"),
        ("--suite small.json --env.args.difficulty easy", "leave --env.args out"),
        ("--suite small.json --require gpu", "--require gpu: name engine or browser or data"),
        ("--only maze --env manyturn/Maze-v0", "--only has no effect without --suite: add --suite v1"),
        ("--suite plan.json", "plan.json: this is not a suite"),
        ("--suite small.json --out single", "single holds an evaluation of one environment: name another folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(command, small, tmp_path, words, told):
    (tmp_path / "plan.json").write_text("[]")
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "episodes.jsonl").write_text("")
    refused = command("evaluate", "expert", *words.split())
    assert refused.code == 2 and told in refused.err, refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.slow
def test_a_trained_policy_is_counted_in_tokens_and_kept_from_tasks_that_it_learnt(command, small, tmp_path):
    sizes = "--model.width 16 --model.layers 1 --model.heads 2 --warmup.episodes 0 --rollout.tasks 4 --rollout.group 2"
    options = f"{sizes} --evaluation.split test --evaluation.limit 2 --evaluation.every 0 --steps 1"
    trained = command("train", "strangers/Stairs-v0", *options.split(), "--out", "run")
    assert trained.code == 0, trained.err
    found = command("evaluate", "run", "--suite", "small.json", "--only", "stairs", "--only", "roof")
    assert found.code == 0, found.err
    values = json.loads((tmp_path / "runs/suite-small/run/suite.json").read_text())
    totals = values["totals"]
    assert totals["prompt_tokens"] > totals["reply_tokens"] > 0 and totals["episodes"] == 6
    assert values["policy"].startswith("run step 1") and "tokens" in found.out.splitlines()[1]
    (tmp_path / "plan.toml").write_text(
        (tmp_path / "plan.toml").read_text().replace("tasks = 4", 'split = "train"\ntasks = 6')
    )
    assert command("suite", "freeze", "plan.toml", "--out", "seen.json").code == 0
    refused = command("evaluate", "run", "--suite", "seen.json")
    assert refused.code == 2 and "stairs: the policy was trained on" in refused.err
    assert "--only NAME plays some panels alone" in refused.err
