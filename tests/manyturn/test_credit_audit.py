"""Figures that depend on the machine, work that is lost, a table or a page that leaves out what was asked for."""

import json
import re

import pytest

MAZE = ("credit-audit", "manyturn/Maze-v0", "--policy", "expert:0.5", "--tasks", 4, "--group", 6)


def test_the_command_ranks_methods_and_shows_every_turn(command, tmp_path):
    ended = command(*MAZE, "--out", tmp_path / "audit")
    assert ended.code == 0 and "turn_gae" in ended.out and "grpo" in ended.out
    summary = json.loads((tmp_path / "audit/summary.json").read_text())
    assert summary["truth"]["reliability"] >= 0.8 and summary["played"]["ended"] == "reliability"
    scores = {score["method"]: score for score in summary["methods"] if score["anchor"] == "environment"}
    assert len(scores) >= 12, "every registered method that the audit can supply"
    assert scores["turn_gae"]["over_base"]["low"] > 0 and scores["grpo"]["within"]["mean"] == 0
    assert {anchor["anchor"] for anchor in summary["anchors"]} == {"environment", "text", "history", "clock"}
    assert next(one for one in summary["anchors"] if one["anchor"] == "history")["forgotten"]["mean"] == 0
    assert "max_tokens" in summary["skipped"]["rewards=overlong+gigpo"] and "spo" in scores
    assert "answer()" in summary["skipped"]["rewards=igpo+gigpo"], "a maze names no answer"
    teachers = [scores["modulation=agentopsd+gigpo"], scores["gigpo"]]
    assert teachers[0]["within"]["mean"] > teachers[1]["within"]["mean"] + 0.1
    page = (tmp_path / "audit/report.html").read_text()
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", page)
    assert page.count("<details>") == 24 and len(re.findall(r"<tr><td>\d+</td>", page)) == summary["played"]["turns"]
    assert (tmp_path / "audit/correlation.svg").read_text().count("<circle") == len(scores)


def test_workers_and_interruptions_change_no_bit(command, tmp_path):
    words = (*MAZE, "--methods", "grpo", "gigpo", "turn_gae")
    assert command(*words, "--out", tmp_path / "one").code == 0
    assert command(*words, "--out", tmp_path / "two", "--workers", 2).code == 0
    assert command(*words, "--out", tmp_path / "cut", "--seconds", 0.01).code == 0
    cut = json.loads((tmp_path / "cut/summary.json").read_text())
    assert cut["played"]["ended"] == "seconds" and cut["played"]["tasks"] < 4
    assert command(*words, "--out", tmp_path / "cut").code == 0
    texts = [(tmp_path / name / "summary.json").read_text() for name in ("one", "two", "cut")]
    assert texts[0] == texts[1] == texts[2]


def test_steps_are_a_budget_and_the_table_says_what_it_is_worth(command):
    ended = command(*MAZE, "--methods", "grpo", "--steps", 1, "--reliability", 0.99)
    assert ended.code == 0 and "below 0.99" in ended.out and "--steps" in ended.out


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--methods", "gigpoo"), "gigpo"),
        (("--methods", "gigpo:turn_wait=2"), "turn_weight"),
        (("--anchors", "clok"), "clock"),
        (("--policy", "expert:half"), "expert:0.5"),
        (("--policy", "openai:gpt"), "FILE.py:FUNCTION"),
        (("--tasks", 1), "tasks"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_what_can(command, words, fix):
    ended = command("credit-audit", "manyturn/Maze-v0", *words)
    assert ended.code == 2 and fix in ended.err


def test_another_audit_in_the_folder_is_left_alone(command, tmp_path):
    assert command(*MAZE, "--methods", "grpo", "--out", tmp_path / "audit").code == 0
    before = (tmp_path / "audit/summary.json").read_text()
    ended = command(*MAZE, "--methods", "grpo", "--seed", 1, "--out", tmp_path / "audit")
    assert ended.code == 2 and "--out" in ended.err
    assert (tmp_path / "audit/summary.json").read_text() == before


def test_a_trained_model_is_continued_from_the_middle_of_its_episodes(command, tiny_run, tmp_path):
    words = ("credit-audit", "manyturn/GuessNumber-v0", "--policy", tiny_run, "--tasks", 2, "--group", 4)
    words = (*words, "--steps", 2000, "--methods", "grpo", "gigpo")
    ended = [command(*words, "--out", tmp_path / name) for name in ("one", "two")]
    assert [one.code for one in ended] == [0, 0]
    one, two = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("one", "two"))
    assert one == two and one["played"]["turns"] >= 8 and one["played"]["continuations"] >= 64
