"""Figures that depend on the machine, work that is lost, a table or a page that leaves out what was asked for."""

import json
import re

import pytest

import manyturn as mt
from manyturn.credit import ConfigError

MAZE = ("credit-audit", "manyturn/Maze-v0", "--policy", "expert:0.5", "--tasks", 4, "--group", 6)


def test_the_command_ranks_methods_and_shows_every_turn(command, tmp_path):
    ended = command(*MAZE, "--out", tmp_path / "audit")
    assert ended.code == 0 and "turn_gae" in ended.out and "grpo" in ended.out
    summary = json.loads((tmp_path / "audit/summary.json").read_text())
    assert summary["truth"]["reliability"] >= 0.8 and summary["played"]["ended"] == "reliability"
    scores = {score["method"]: score for score in summary["methods"] if score["anchor"] == "environment"}
    assert len(scores) >= 12, "every registered method that the audit can supply"
    oracles = {name for name, score in scores.items() if score["oracle"]}
    assert {"turn_gae", "istar", "rewards=spa+gigpo"} <= oracles and not oracles & {"grpo", "forks", "g2po"}
    assert "turn_gae (given the truth)" in ended.out and "modulation=entropy_weight+gigpo" in ended.out
    assert scores["turn_gae"]["over_base"]["low"] > 0 and scores["grpo"]["within"]["mean"] == 0
    assert {anchor["anchor"] for anchor in summary["anchors"]} == {"environment", "text", "history", "clock"}
    assert next(one for one in summary["anchors"] if one["anchor"] == "history")["forgotten"]["mean"] == 0
    assert "max_tokens" in summary["skipped"]["rewards=overlong+gigpo"] and "spo" in scores
    assert "answer()" in summary["skipped"]["rewards=igpo+gigpo"], "a maze names no answer"
    assert "gra+gigpo" in summary["skipped"]["rewards=gated+gigpo"], "a stage without defaults is named with its fix"
    assert "part=NAME" in summary["skipped"]["rewards=rubric+gigpo"], "a maze pays no rubric"
    assert summary["without_effect"]["rewards=invalid_penalty+gigpo"] == "gigpo"
    teachers = [scores["modulation=agentopsd+gigpo"], scores["gigpo"]]
    assert teachers[0]["within"]["mean"] > teachers[1]["within"]["mean"] + 0.1
    page = (tmp_path / "audit/report.html").read_text()
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", page)
    turns, episodes = summary["played"]["turns"], summary["played"]["episodes"]
    assert summary["played"]["branches_per_episode"] == pytest.approx(4 * (turns - episodes + 4) / episodes)
    assert page.count("<details>") == 24 and len(re.findall(r"<tr><td>\d+</td>", page)) == summary["played"]["turns"]
    dots = (tmp_path / "audit/correlation.svg").read_text().count("<circle")
    assert dots == len(scores) - len(summary["without_effect"])


@pytest.mark.deep
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
    audits = [mt.credit_audit("manyturn/Maze-v0", "expert:0.5", methods=["turn_gae"], steps=n) for n in (3000, 40000)]
    assert audits[1].played.steps <= 40000 and audits[0].played.ended == audits[1].played.ended == "steps"
    least = [len(start.returns) for task in audits[0].played.tasks for start in task.starts]
    assert set(least) == {4}, "a budget below the least that is played is not exceeded by more"


def test_credit_is_what_a_learner_would_take_from_a_turn():
    words = ["gigpo", "high_entropy_tokens+gigpo", "psr_nsr:learns=negative", "psr_nsr:learns=positive"]
    methods = [*words, "turn_gae"]
    audit = mt.credit_audit("manyturn/Maze-v0", "expert:0.5", methods=methods, tasks=4, group=6, steps=9000)
    credits = {word: audit.credits[word, "environment"] for word in words}
    tokens, negative, positive = (credits[word] for word in words[1:])
    assert 0.1 < (tokens != 0).mean() < 0.6, "a fifth of the tokens, and those of equal entropy"
    assert ((negative == -1) ^ (positive == 1)).all() and ((negative == 0) ^ (positive == 0)).all()
    assert "turn_gae" not in [score.method for score in audit.ranked]


def test_branches_tell_a_method_more_of_the_situations_on_their_way():
    words = ["situation_gae:gamma=1.0", "situation_gae:gamma=1.0+branches"]
    audit = mt.credit_audit("manyturn/Maze-v0", "expert:0.5", methods=words, tasks=8, group=3)
    plain, branched = (next(one for one in audit.scores if one.method == word) for word in words)
    assert branched.over_base is not None and branched.over_base.low > 0 and branched.within.mean > plain.within.mean


def test_an_anchor_that_forgets_is_not_named_without_the_one_that_forgets_least():
    options = dict(methods=["grpo"], tasks=4, group=6, steps=20_000)
    compared = (["environment", "text"], ["environment", "clock"])
    audits = [mt.credit_audit("manyturn/PivotSign-v0", "random", anchors=names, **options) for names in compared]
    remarks = ["\n".join(audit.remarks) for audit in audits]
    assert all("environment forgets what decides" in remark for remark in remarks)
    assert "text forgets least" in remarks[0] and "forgets least" not in remarks[1], (
        "the text shows which path was taken"
    )


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--methods", "gigpoo"), "gigpo"),
        (("--methods", "gigpo:turn_wait=2"), "turn_weight"),
        (("--methods", "mopps"), "mopps"),
        (("--methods", "gated+gigpo"), "gra+gigpo"),
        (("--anchors", "clok"), "clock"),
        (("--policy", "expert:half"), "expert:0.5"),
        (("--policy", "openai:gpt"), "FILE.py:FUNCTION"),
        (("--tasks", 1), "tasks = 1: give at least 2 (--tasks)"),
        (("--chance", "seen"), "as_played"),
        (("--policy", "expertt"), "expert?"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_what_can(command, words, fix):
    ended = command("credit-audit", "manyturn/Maze-v0", *words)
    assert ended.code == 2 and fix in ended.err


def test_a_misspelt_argument_of_the_function_is_named():
    with pytest.raises(ConfigError, match="'methods'"):
        mt.credit_audit("manyturn/Maze-v0", method=["grpo"])


def test_another_audit_in_the_folder_is_left_alone(command, tmp_path):
    assert command(*MAZE, "--methods", "grpo", "--out", tmp_path / "audit").code == 0
    before = (tmp_path / "audit/summary.json").read_text()
    ended = command(*MAZE, "--methods", "grpo", "--seed", 1, "--out", tmp_path / "audit")
    assert ended.code == 2 and "--out" in ended.err
    assert (tmp_path / "audit/summary.json").read_text() == before
    ended = command(*MAZE, "--methods", "grpo", "turn_gae", "--out", tmp_path / "audit")
    assert ended.code == 2 and "turn_gae" in ended.err and "--out" in ended.err


def test_a_trained_model_is_continued_from_the_middle_of_its_episodes(command, tiny_run, tmp_path):
    words = ("credit-audit", "manyturn/GuessNumber-v0", "--policy", tiny_run, "--tasks", 2, "--group", 4)
    words = (*words, "--steps", 2000, "--methods", "grpo", "gigpo")
    ended = [command(*words, "--out", tmp_path / name) for name in ("one", "two")]
    assert [one.code for one in ended] == [0, 0]
    one, two = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("one", "two"))
    assert one == two and one["played"]["turns"] >= 8 and one["played"]["continuations"] >= 64
