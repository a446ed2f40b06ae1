"""Improvements that would not rise, that pay twice, cost too much, or learn from what they are measured on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from guessing_model import LESSON, guessing, is_writing
from needs_endpoint import Server, reading

import manyturn as mt
from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.agents.experience.store import read_experience
from manyturn.envs.contract.options.options import ConfigError
from manyturn.terminal import command_exit

ENV = "manyturn/GuessNumber-v0"
GUESSING = ("improve", "openai:toy", "--env", ENV, "--pool.limit", 8, "--validation.limit", 20)
PRICED = ("--endpoint.price-in", 1, "--endpoint.price-out", 4)
DOORS = """
import manyturn as mt

WORDS = {"red": "salt", "blue": "moon", "green": "fire", "grey": "rain", "pink": "iron"}

class Passwords(mt.TextEnv):
    instructions = "Say the word that opens the door."
    max_turns = 1

    def tasks(self, split):
        first = self.splits.index(split) % 3 * 100  # again is the training split under other ids
        return [mt.Task(f"{split}/{n}", split, {"door": c, "n": first + n}) for n, c in enumerate(WORDS)]

    splits = ("train", "validation", "test", "again")

    def begin(self, task, rng):
        return f"A {task.params['door']} door with the number {task.params['n']}."

    def respond(self, action):
        return self.succeed("Open.") if action == WORDS[self.task.params["door"]] else self.fail("Shut.")

def trier(observation, info):
    words, colour = list(WORDS.values()), observation.split()[1]
    for case in info["instructions"].split("Task: ")[1:]:
        if f"A {colour} door" in case and "led to success" in case:
            return case.rpartition("1. ")[2].split()[0]
    return words[info["repeat"] % 5] if info["repeat"] else "please"
"""
SCRIBE = """
class Scribe:
    def act(self, observation, info):
        return "guess 1"

    def write(self, prompt, info):
        return "Never guess 1." if "guess 1" in prompt else ""
"""


@pytest.fixture
def model(endpoint_server: Server) -> Server:
    endpoint_server.script = [reading(guessing)]
    return endpoint_server


def rounds_of(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "improvement.json").read_text())["rounds"]


@pytest.mark.parametrize("method", ["reflexion", pytest.param("training_free_grpo", marks=pytest.mark.deep)])
def test_a_frozen_model_rises_on_held_out_tasks_over_rounds_and_the_file_carries_it(command, model, tmp_path, method):
    out = tmp_path / "out"
    ended = command(*GUESSING, *PRICED, "--method", method, "--rounds", 2, "--out", out)
    assert ended.code == 0, ended.err
    first, *_, last = rounds_of(out)
    for decoding in ("sampled", "greedy"):
        before, after = (one["validation"][decoding] for one in (first, last))
        assert before["n_tasks"] == after["n_tasks"] == 20
        assert before["ci_high"] < after["ci_low"], "intervals on the held-out panel are apart"
    spent = sum(phase["cost"] or 0 for one in rounds_of(out) for phase in one["spent"].values())
    assert ended.out.count("held-out, greedy") == 3 and f"cost {spent:.4g} USD" in ended.out
    assert LESSON in (out / "experience.md").read_text()
    shown = [entry for entry in read_experience(out).entries if LESSON in entry.text]
    assert shown and all(entry.contents for entry in shown)

    written = [entry["body"]["messages"][-1]["content"] for entry in model.requests if is_writing(entry["body"])]
    with mt.make(ENV) as env:
        held_out = [env.reset(options={"task": f"validation/easy/{n}"})[0] for n in range(20)]
        pool = [env.reset(options={"task": f"train/easy/{n}"})[0] for n in range(8)]
    assert not [text for text in {*held_out} - {*pool} if any(text in prompt for prompt in written)]

    plain = mt.evaluate("openai:toy", ENV, limit=20, out=tmp_path / "plain")
    better = mt.evaluate("openai:toy", ENV, limit=20, out=tmp_path / "better", experience=out)
    assert better.summary["success"]["mean"] > plain.summary["success"]["mean"]
    assert better.summary["experience"]["hash"] == read_experience(out).hash and plain.summary["experience"] is None
    notes = mt.compare(tmp_path / "plain", tmp_path / "better")["notes"]
    assert [note for note in notes if note.startswith("experience differs")]
    other = command("evaluate", "openai:toy", "--env", ENV, "--limit", 20, "--out", tmp_path / "better")
    assert other.code == command_exit.BAD_INPUT, "an evaluation does not continue with another experience"


@pytest.mark.parametrize("after", [70, *(pytest.param(n, marks=pytest.mark.deep) for n in (5, 40, 88, 92, 100, 114))])
def test_one_that_is_killed_continues_to_the_same_end_and_asks_again_for_nothing_it_had(
    command, model, tmp_path, monkeypatch, after
):
    monkeypatch.chdir(tmp_path)
    sizes = ("--pool.limit", 4, "--validation.limit", 8, "--validation.decoding", "greedy", "--method.attempts", 3)
    words = ("improve", "openai:toy", "--env", ENV, *sizes, "--method", "training_free_grpo", "--rounds", 2)
    words = (*map(str, words), "--endpoint.concurrency", "4", "--out")
    assert command(*words, "whole").code == 0
    whole = len(model.requests)
    killed = subprocess.Popen([sys.executable, "-P", "-m", "manyturn", *words, "part"], stderr=subprocess.DEVNULL)

    def deadly(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        if len(model.requests) - whole >= after:
            killed.kill()
            return 0, b"", {}
        return 200, guessing(handler.asked), {}

    model.script = [deadly]
    assert killed.wait() == -9
    before, model.script = len(model.requests), [reading(guessing)]
    assert command(*words, "part").code == 0
    assert Path("part/experience.jsonl").read_bytes() == Path("whole/experience.jsonl").read_bytes()
    same = ("experience", "attempts", "validation", "solved")
    ends = [[[one[key] for key in same] for one in rounds_of(Path(name))] for name in ("part", "whole")]
    assert ends[0] == ends[1]
    open_turns = 4 * 5 + 4  # an episode that was open is played again, of at most five turns
    assert len(model.requests) - before <= whole - (before - whole) + open_turns

    count = len(model.requests)
    assert command(*words, "part").code == 0 and len(model.requests) == count, "one that has ended asks for nothing"


def test_cases_of_similar_tasks_let_a_python_policy_rise(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("doors.py").write_text(DOORS)
    words = ("improve", "doors.py:trier", "--env", "doors.py:Passwords", "--method", "cases", "--method.attempts", 5)
    ended = command(*words, "--rounds", 1, "--out", "out")
    assert ended.code == 0, ended.err
    first, last = rounds_of(Path("out"))
    assert first["validation"]["validation"]["mean"] == 0
    # The word of a red door is the first, which no attempt says: "please" comes in its place.
    assert last["validation"]["validation"]["mean"] == 0.8 and len(last["solved"]) == 4
    more = command(*words, "--rounds", 3, "--out", "out")
    assert more.code == 0 and [one["unchanged_since"] for one in rounds_of(Path("out"))] == [None, None, 1, 1]
    other = command(*words, "--method.failures", "false", "--out", "out")
    assert other.code == command_exit.BAD_INPUT and "method" in other.err and len(rounds_of(Path("out"))) == 4
    chained = command(*words, "--rounds", 1, "--experience", "out", "--out", "next")
    assert chained.code == 0, chained.err


class TestHeldOut:
    """Memory that comes from the tasks on which it is to be measured."""

    @pytest.fixture
    def out(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        Path("doors.py").write_text(DOORS)
        mt.improve("doors.py:trier", "doors.py:Passwords", out="out", method="cases", rounds=1)
        return Path("out")

    @pytest.mark.parametrize("split", ["train", "again"])
    def test_an_evaluation_on_a_task_behind_the_experience_is_refused_under_any_id(self, out, split):
        assert mt.evaluate("doors.py:trier", "doors.py:Passwords", split="test", experience=out).summary
        with pytest.raises(NotHeldOut):
            mt.evaluate("doors.py:trier", "doors.py:Passwords", split=split, experience=out)

    def test_a_pool_that_holds_a_task_of_the_panel_is_refused_before_anything_is_played(self, out):
        for given in ({"pool": {"split": "validation"}}, {"validation": {"split": "train"}}):
            with pytest.raises(NotHeldOut):
                mt.improve("doors.py:trier", "doors.py:Passwords", out="other", method="cases", **given)
        with pytest.raises(NotHeldOut):  # by way of an earlier improvement
            pool, panel = {"split": "test"}, {"split": "train"}
            mt.improve(
                "doors.py:trier", "doors.py:Passwords", out="o", method="cases", experience=out, pool=pool,
                validation=panel,
            )  # fmt: skip
        assert not Path("other").exists() and not Path("o").exists()

    @pytest.mark.parametrize("edit", ["tasks", "text"])
    def test_an_edited_file_is_refused_since_its_tasks_are_unknown(self, command, out, edit):
        head, *entries = map(json.loads, (out / "experience.jsonl").read_text().splitlines())
        head["seen"] = [] if edit == "tasks" else head["seen"]
        for entry in entries:
            entry["contents" if edit == "tasks" else "text"] = [] if edit == "tasks" else "The word is salt."
        Path("edited.jsonl").write_text("\n".join(map(json.dumps, [head, *entries])))
        words = ("evaluate", "doors.py:trier", "--env", "doors.py:Passwords", "--split", "train")
        ended = command(*words, "--experience", "edited.jsonl")
        assert ended.code == command_exit.BAD_INPUT and "edited" in ended.err

    def test_entries_of_ones_own_are_shown_with_a_note_that_nothing_could_be_checked(self, command, out):
        Path("own.jsonl").write_text(json.dumps({"text": "Task: A red door\nled to success:\n1. salt"}))
        words = ("evaluate", "doors.py:trier", "--env", "doors.py:Passwords", "--out", "own")
        ended = command(*words, "--experience", "own.jsonl")
        assert ended.code == 0 and "by hand" in ended.err
        assert json.loads(Path("own/summary.json").read_text())["success"]["mean"] == 0.2
        made = mt.improve("doors.py:trier", "doors.py:Passwords", out="on", method="cases", experience="own.jsonl")
        assert made.experience.by_hand and read_experience(Path("on")).by_hand, "rounds do not wash it clean"


@pytest.mark.deep
def test_a_budget_stops_before_the_next_reply_and_more_of_it_goes_on(command, model, tmp_path):
    words = (*GUESSING, *PRICED, "--method", "reflexion", "--rounds", 1, "--out", tmp_path / "out")
    ended = command(*words, "--budget.tokens", 20_000)
    assert ended.code == 0 and "stopped" in ended.out and "budget.tokens" in ended.out
    spent = len(model.requests)
    again = command(*words, "--budget.tokens", 20_000)
    assert again.code == 0 and len(model.requests) == spent, "what was spent before counts"
    more = command(*words, "--budget.usd", 10)
    assert more.code == 0 and "stopped" not in more.out and len(model.requests) > spent
    assert [one["round"] for one in rounds_of(tmp_path / "out")] == [0, 1]


@pytest.mark.deep
def test_a_writer_that_fails_ends_the_command_and_the_next_one_goes_on_from_there(command, model, tmp_path):
    broken = True

    def answer(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        return (500, b"", {}) if broken and is_writing(handler.asked) else (200, guessing(handler.asked), {})

    model.script = [answer]
    words = (*GUESSING, "--method", "reflexion", "--rounds", 1, "--out", tmp_path / "out")
    words += ("--endpoint.attempts", 1, "--endpoint.first-wait", 0)
    failed = command(*words)
    assert failed.code == command_exit.TOO_MANY_ERRORS and "writer" in failed.err
    attempts = len(list((tmp_path / "out/rounds/1/attempts").glob("summary.json")))
    played, broken = len(model.requests), False
    assert command(*words).code == 0 and attempts == 1
    first = model.requests[played]["body"]
    assert is_writing(first), "attempts are not made again"


@pytest.mark.deep
def test_another_writer_writes_and_only_where_texts_are_asked_for(command, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = command(*GUESSING, "--method", "reflexion", "--rounds", 1, "--writer", "openai:sage", "--out", "out")
    assert ended.code == 0, ended.err
    models = {(request["body"]["model"], is_writing(request["body"])) for request in model.requests}
    assert models == {("toy", False), ("sage", True)}
    Path("mine.py").write_text(SCRIBE)
    made = mt.improve("mine.py:Scribe", ENV, out="mine", method="reflexion", rounds=1, pool={"limit": 2})
    assert [entry.text for entry in made.experience.entries] == ["Never guess 1."] * 2
    words = ("improve", "mine.py:Scribe", "--env", ENV, "--method", "reflexion", "--rounds", 1, "--pool.limit", 2)
    words += ("--validation.limit", 2, "--writer", "openai:sage", "--out", "sage")
    assert command(*words).code == 0
    other = command(*words, "--sampling.temperature", 0.5)
    assert other.code == command_exit.BAD_INPUT and "writer.sampling.temperature" in other.err


@pytest.mark.parametrize(
    ("words", "kind", "fix"),
    [
        (("--method", "reflection"), ValueError, "reflexion"),
        ((), ValueError, "--method"),
        (("--method", "cases", "--writer", "openai:sage"), ConfigError, "--writer"),
        (("--method", "cases", "--budget.usd", "1"), ConfigError, "price-in"),
        (("--method", "reflexion", "--agent.instructions", "false"), ValueError, "agent.instructions"),
        (("--method", "cases", "--pool.limt", "3"), ValueError, "limit"),
        (("--method", "reflexion", "--budget.tokens", "9", "--writer", "{here}/mine.py:Scribe"), ConfigError, "leave"),
        (
            ("--method", "cases", "--sampling.temperature", "none", "--validation.decoding", "greedy"),
            ConfigError,
            "leave",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused_before_anything_is_asked(command, model, tmp_path, words, kind, fix):
    (tmp_path / "mine.py").write_text(SCRIBE)
    ended = command(*GUESSING, *(word.format(here=tmp_path) for word in words), "--out", tmp_path / "out")
    assert ended.code == command_exit.BAD_INPUT and fix in ended.err and not model.requests
    assert issubclass(kind, ValueError)


def test_policies_that_read_no_instructions_or_write_nothing_are_refused(tiny_run, tmp_path):
    for policy, method, fix in (
        ("expert", "cases", "leave"),
        (lambda observation, info: "", "reflexion", "--writer"),
        (str(tiny_run), "cases", "agent.instructions"),
    ):
        with pytest.raises(ValueError, match=fix):
            mt.improve(policy, ENV if policy != str(tiny_run) else None, out=tmp_path / "out", method=method)


def test_a_model_in_this_process_attempts_and_writes_and_what_is_too_long_is_counted(tiny_run, tmp_path):
    folder = shutil.copytree(next(tiny_run.glob("checkpoints/*/model")), tmp_path / "weights")
    env = f"{tiny_run.parent}/doors.py:Doors"
    sizes = {"pool": {"limit": 4}, "validation": {"limit": 2}, "agent": {"max_context": 256, "format": "free_text"}}
    made = mt.improve(
        str(folder), env, out=tmp_path / "out", method="reflexion", rounds=1, sampling={"max_tokens": 8}, **sizes
    )
    first, last = made.rounds
    assert {*first.validation} == {"sampled", "greedy"} and last.attempts is not None
    assert last.attempts["n_episodes"] == 4 and last.total.reply_tokens
    assert len(made.experience.entries) + last.unwritten == 4 - len(last.solved)


def test_tasks_that_a_writer_was_trained_on_measure_nothing_that_it_writes(tiny_run, tmp_path):
    (tmp_path / "mine.py").write_text(SCRIBE)
    improving = {"method": "reflexion", "rounds": 1, "writer": str(tiny_run), "pool": {"split": "test", "limit": 2}}
    policy, env = f"{tmp_path}/mine.py:Scribe", f"{tiny_run.parent}/doors.py:Doors"
    with mt.load_policy(str(tiny_run)) as writer:
        seen = writer.candidate.seen
    made = mt.improve(policy, env, out=tmp_path / "out", validation={"limit": 2}, **improving)
    assert made.experience.trained == read_experience(tmp_path / "out").trained == seen != frozenset()
    with pytest.raises(NotHeldOut, match="experience"):
        mt.evaluate(policy, env, split="train", experience=tmp_path / "out")
    with pytest.raises(NotHeldOut, match="writer"):
        mt.improve(policy, env, out=tmp_path / "other", validation={"split": "train", "limit": 128}, **improving)
