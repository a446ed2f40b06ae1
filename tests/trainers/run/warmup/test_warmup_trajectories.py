"""A warm-up on trajectories: one that plays something else, learns from failures or held-out tasks, or loses words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from short_runs import short_run

import manyturn as mt
from manyturn.agents.trajectories.folder_writer import write_folder
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.api.trajectory_formats import export
from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes.stack import stacked
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

DOORS = f"{Path(__file__).parents[2] / 'doors.py'}:Doors"
WARMUP = {"episodes": 40, "must_succeed": False, "batch": 8, "max_updates": 3, "check_episodes": 2}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Evaluations of the expert and of a random policy on all training tasks."""
    folder = tmp_path_factory.mktemp("shown")
    for policy in ("expert", "random"):
        mt.evaluate(policy, DOORS, split="train", limit=1000, out=folder / policy)
    return folder


def begun(folder: Path, warmup: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], list[str]]:
    """The summary of a run that ends with its warm-up, and its notices."""
    lines: list[dict[str, Any]] = []
    told = {"env": {"id": DOORS}, "agent": {"max_context": 512}, "sampling": {"max_tokens": 8}, "steps": 0}
    config = short_run(**stacked([told, {"evaluation": {"limit": 2}, "warmup": {**WARMUP, **warmup}}, changes]))
    summary = asyncio.run(train(config, folder, report=lines.append))
    return summary, [line["notice"] for line in lines if line["phase"] == "notice"]


def refused(folder: Path, path: Path, **changes: Any) -> str:
    with pytest.raises(ConfigError) as refusal:
        begun(folder, {"trajectories": str(path)}, **changes)
    assert "\n" not in str(refusal.value) and not folder.exists(), "a folder that is free again"
    return str(refusal.value)


def lines(path: Path, *conversations: list[tuple[str, str]], **known: Any) -> Path:
    """A file of somebody else's conversations: pairs of what was read and what was said."""
    records = []
    for pairs in conversations:
        messages = [{"role": "system", "content": "Somebody else's system text."}]
        for read, said in pairs:
            messages += [{"role": "user", "content": read}, {"role": "assistant", "content": said}]
        records.append(json.dumps({"messages": messages, **known}))
    path.write_text("\n".join(records) + "\n", encoding="utf-8")
    return path


@pytest.mark.deep
def test_what_the_expert_has_played_teaches_what_the_expert_would(shown, tmp_path):
    played, _ = begun(tmp_path / "played", {"noise": 0.0})
    found, said = begun(tmp_path / "found", {"trajectories": str(shown / "expert")})
    assert found["weights"] == played["weights"], "the same turns of the same tasks, to the bit"
    found["warmup"]["cpu_seconds"] = played["warmup"]["cpu_seconds"]
    assert found["warmup"] == played["warmup"] and not any("not imitated" in line for line in said)
    assert [line["phase"] for line in read_metrics(tmp_path / "found")][:2] == ["demonstrations", "imitation"]
    for form, out in (
        ("atif", tmp_path / "atif"),
        ("chat", tmp_path / "chat.jsonl"),
        ("inspect", tmp_path / "log"),
    ):
        export(shown / "expert", form, out, note=lambda text: None)
        again, _ = begun(tmp_path / f"of_{form}", {"trajectories": str(out)})
        assert (form, again["weights"]) == (form, played["weights"])
    state = json.loads((tmp_path / "found/checkpoints/step_000000/state.json").read_text())
    assert len(state["seen"]) == 40, "what was shown is never held out"


def test_failures_and_held_out_tasks_are_not_learnt_from(shown, tmp_path):
    told = refused(tmp_path / "run", shown / "random")
    assert told.startswith("none of the 86 trajectories in ") and "name others as warmup.trajectories" in told
    mt.evaluate("expert", DOORS, split="test", limit=3, out=tmp_path / "test")
    told = refused(tmp_path / "run", tmp_path / "test")
    assert "of tasks that this run is measured on, first 'test/6': imitate those of training tasks" in told
    unknown = [[("Order: red, blue, green, white.", "open red")]]
    mixed = lines(tmp_path / "mixed.jsonl", *unknown)
    with mixed.open("a") as file:
        file.write(lines(tmp_path / "lost.jsonl", *unknown, success=False, ending="completed").read_text())
    found, said = begun(tmp_path / "run", {"trajectories": str(mixed)})
    assert found["warmup"]["demonstrations"] == 1
    assert [line for line in said if line.startswith("1 of 2 trajectories are not imitated: they did not reach")], said


@pytest.mark.deep
def test_a_reply_of_another_format_is_written_in_the_policys_and_reasoning_stays(tmp_path):
    read = "Order: red, blue, green, white."
    tagged = {"agent": {"format": "tagged"}, "sampling": {"max_tokens": 64}}
    plain = lines(tmp_path / "plain.jsonl", [(read, "open red")])
    as_tags = lines(tmp_path / "tags.jsonl", [(read, "<action>open red</action>")])
    reasoned = lines(tmp_path / "reasoned.jsonl", [(read, "Red is first. <action>open red</action>")])
    weights = [
        begun(tmp_path / path.stem, {"trajectories": str(path)}, **tagged)[0]["weights"]
        for path in (plain, as_tags, reasoned)
    ]
    assert weights[0] == weights[1] != weights[2]
    short = {**tagged, "sampling": {"max_tokens": 4}}
    told = refused(tmp_path / "run", reasoned, **short)
    assert "the demonstrated replies have up to" in told and "--sampling.max-tokens" in told


def test_an_invalid_turn_is_read_and_not_learnt(shown, tmp_path):
    export(shown / "expert", "atif", tmp_path / "atif", note=lambda text: None, limit=4)
    found = read_any(tmp_path / "atif")
    for one in found:
        one.turns[1] |= {"reply": "hm", "action": "hm", "understood": False}
    write_folder(tmp_path / "folder", found, "expert")
    [first, imitation, *_] = _metrics(tmp_path / "run", tmp_path / "folder")
    [_, as_it_was, *_] = _metrics(tmp_path / "before", tmp_path / "atif")
    assert first["demonstrations"] == 4
    assert imitation["trained_tokens"] == as_it_was["trained_tokens"], "what is said is read all the same"
    assert imitation["loss"] != as_it_was["loss"]


def _metrics(folder: Path, path: Path) -> list[dict[str, Any]]:
    begun(folder, {"trajectories": str(path), "max_updates": 1})
    return read_metrics(folder)


def test_lists_of_commands_that_no_trajectory_holds_are_refused(shown, tmp_path):
    message = refused(tmp_path / "run", shown / "expert", agent={"only_admissible": True})
    assert message.startswith("agent.only_admissible needs the admissible commands of each turn")


def test_what_is_no_trajectory_is_refused_with_what_would_be(shown, tmp_path):
    assert "there is no" in refused(tmp_path / "run", tmp_path / "nowhere")
    begun(tmp_path / "before", {"trajectories": str(shown / "expert")})
    assert "is a run: manyturn trajectories export" in refused(tmp_path / "run", tmp_path / "before")
    (tmp_path / "file.jsonl").write_text("{}\n")
    assert "line 1 is no conversation" in refused(tmp_path / "run", tmp_path / "file.jsonl")
