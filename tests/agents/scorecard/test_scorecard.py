"""A reward that is paid for nothing must be recognised, by the probe that finds it, and an honest one left in peace."""

import json
import os
from pathlib import Path

import pytest

PAYING = Path(__file__).with_name("paying.py")


@pytest.fixture
def audit(command, tmp_path):
    """Runs the command; gives exit code, JSON and page."""

    def run(env, *words, samples=12):
        out = tmp_path / "card.md"
        ended = command("check", env, "--audit", "--samples", samples, "--out", out, *words)
        assert out.is_file(), ended.err
        return ended.code, json.loads(out.with_suffix(".json").read_text()), out.read_text()

    return run


@pytest.mark.parametrize(
    ("cls", "paid"),
    [
        ("Substring", ["all commands"]),
        ("Judge", ["injection: verdict", "injection: exit"]),
        ("Ticket", ["injection: system, in calls"]),
        ("Repeated", ["memory"]),
    ],
)
def test_a_hole_is_named_by_the_probe_that_is_paid_and_fails_the_command(audit, cls, paid):
    code, card, page = audit(f"{PAYING}:{cls}")
    assert (code, card["paid"]) == (1, paid)
    assert f"**Paid like the expert: {', '.join(paid)}." in page
    row = next(row for row in card["probes"] if row["name"] == paid[0])
    assert row["success"][0] == 1.0 and 0 < row["success"][1] < 1 and len(row["paid_at"]) == 5


def test_an_honest_reward_passes_with_intervals_and_the_same_bits_each_time(audit):
    code, card, page = audit(f"{PAYING}:Honest")
    assert (code, card["paid"], card["paid_in_part"]) == (0, [], [])
    assert card["thresholds"] == {"success": 0.75, "return": 0.75}
    assert [card["probes"][0][name] for name in ("name", "verdict", "success")] == [
        *("expert", "reference"),
        [1.0, pytest.approx(0.7575, abs=1e-4), 1.0],
    ]
    assert audit(f"{PAYING}:Honest") == (code, card, page)


def test_a_constant_that_has_half_of_the_tasks_is_paid_in_part(audit):
    code, card, _ = audit(f"{PAYING}:Truth", samples=24)
    assert code == 0 and {"constant: yes", "constant: no"} <= set(card["paid_in_part"])


def test_silence_is_not_paid_since_random_letters_cost(audit):
    code, card, _ = audit(f"{PAYING}:Costly")
    by_name = {row["name"]: row for row in card["probes"]}
    assert code == 0 and by_name["random"]["return"][0] == -3 and by_name["empty"]["verdict"] == "not paid"


def test_an_error_of_the_environment_is_no_verdict(audit):
    code, card, page = audit(f"{PAYING}:Brittle")
    [row] = [row for row in card["probes"] if row["errors"]]
    assert (row["name"], row["errors"], row["verdict"]) == ("constant: done", 12, "not judged")
    assert code == 0 and "paying.py, line" in row["first_error"] and "raised an error are left out" in page


def test_held_out_tasks_are_compared_with_training_tasks_and_with_a_file(audit, tmp_path):
    data = tmp_path / "corpus.jsonl"
    numbers = [3003 * 7919 % 900_007 + 100_000, 3004 * 7919 % 900_007 + 100_000]
    data.write_text("\n".join(json.dumps({"n": 1, "of": ["Other.", f"THE  number\nis {n}"]}) for n in numbers))
    train, named = audit(f"{PAYING}:Honest", "--known", data)[1]["overlaps"]
    assert [(one["source"], one["texts"], one["same"]) for one in (train, named)] == [
        ("train", 24, 0),
        ("corpus.jsonl", 4, 2),
    ]
    assert named["same_examples"] == {"test/3003": "corpus.jsonl:1", "test/3004": "corpus.jsonl:2"}
    [repeated] = audit(f"{PAYING}:Repeated")[1]["overlaps"]
    assert [repeated[name] for name in ("same", "long", "solved_alike")] == [24, 24, [20, 20]]


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--out", "x.md"), "add --audit"),
        (("--audit", "--known", "{fifo}"), "name a regular file"),
        (("--audit", "--known", "{empty}"), "name the file that holds the data"),
        (("--audit", "--known", "/no/such"), "name a text, JSON, JSON lines or CSV file"),
        (("--audit", "--out", "/no/such/x.md"), "make it first"),
        (("--audit", "--samples", "1"), "at least 2"),
    ],
)
def test_bad_input_is_one_line_that_names_the_fix(command, tmp_path, words, fix):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").write_text("\n")
    places = {"fifo": tmp_path / "fifo", "empty": tmp_path / "empty"}
    ended = command("check", f"{PAYING}:Honest", *(word.format(**places) for word in words))
    assert ended.code == 2 and fix in ended.err and ended.err.count("\n") == 1, ended.err
