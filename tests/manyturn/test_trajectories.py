"""What a run and an evaluation have recorded leaves in every format, and comes back as it was: trajectories.md."""

import json
from pathlib import Path

import pytest

from manyturn.agents.records.episode_rows import read_turns
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.agents.trajectories.trajectory import canonical, to_plain

pytestmark = pytest.mark.versions

DOORS = (Path(__file__).parents[1] / "trainers" / "doors.py").read_text(encoding="utf-8")
SMALL = [
    *("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--sampling.max-tokens", 8, "--device", "cpu"),
    *("--agent.instructions", "true", "--env.wrappers", '[{name = "turn_cost", cost = 0.25}]'),
    *("--warmup.episodes", 0, "--rollout.tasks", 4, "--rollout.group", 2, "--evaluation.limit", 2, "--steps", 2),
]


def texts(path: Path) -> list[str]:
    return [canonical(to_plain(one)) for one in read_any(path)]


@pytest.fixture(scope="module")
def run(tmp_path_factory, forked):
    """A run that keeps its tokens."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "doors.py").write_text(DOORS, encoding="utf-8")
    words = ["-m", "manyturn", "train", "doors.py:Doors", *SMALL, "--keep-tokens", "true", "--out", "run"]
    ended = forked(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "run"


@pytest.mark.deep
@pytest.mark.parametrize("form", ["atif", "datasets", "inspect", "openenv"])
def test_a_run_goes_out_and_comes_in_and_goes_out_again_to_the_same_bytes(form, run, tmp_path, command):
    first = tmp_path / {"openenv": "out.jsonl"}.get(form, "out")
    told = command("trajectories", "export", run, "--as", form, "--out", first)
    name = {"inspect": "samples", "openenv": "traces"}.get(form, "trajectories")
    assert told.code == 0 and told.out.startswith(f"16 {name}: ")
    found = read_any(first)
    rows = [row for step in (1, 2) for row in read_turns(run / "turns" / f"step_{step:06d}.parquet")]
    assert canonical([row for one in found for row in one.turns]) == canonical(rows)
    assert all(one.ledger.reply_logprobs(0).astype("f4").tolist() == one.turns[0]["logprobs"] for one in found)
    assert all(one.about["system"].startswith("Open the doors") for one in found)
    assert command("trajectories", "import", first, "--out", tmp_path / "in").code == 0
    again = tmp_path / f"again{first.suffix}"
    assert command("trajectories", "export", tmp_path / "in", "--as", form, "--out", again).code == 0
    assert texts(first) == texts(tmp_path / "in") == texts(again)
    if form == "atif":
        assert [file.read_bytes() for file in sorted(first.iterdir())] == [
            file.read_bytes() for file in sorted(again.iterdir())
        ]
        report = command("report", tmp_path / "in")
        assert report.code == 0 and "<script" in (tmp_path / "in" / "report.html").read_text()


def test_an_evaluation_goes_out_for_fine_tuning_and_says_what_is_lost(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("doors.py").write_text(DOORS, encoding="utf-8")
    for policy in ("expert", "random"):
        played = command("evaluate", policy, "--env", "doors.py:Doors", "--limit", 3, "--repeats", 2, "--out", policy)
        assert played.code == 0
    told = command("trajectories", "export", "expert", "--as", "chat", "--success", "--out", "good.jsonl")
    assert told.code == 0 and "has no place for ids of tokens, log-probabilities" in told.out
    lines = [json.loads(line) for line in Path("good.jsonl").read_text().splitlines()]
    assert len(lines) == 6 and lines[0]["messages"][0]["role"] == "system" and lines[0]["return"] == 1.0
    nothing = command("trajectories", "export", "random", "--as", "chat", "--success", "--out", "none.jsonl")
    assert nothing.code == 2 and "has no episodes that reached their goal" in nothing.err
    assert not Path("none.jsonl").exists()
    none = command("trajectories", "export", "expert", "--as", "preferences", "--out", "pairs.jsonl")
    assert none.code == 2 and "there is nothing to write" in none.err and not Path("pairs.jsonl").exists()
    ids = command("trajectories", "export", "expert", "--as", "openenv", "--out", "traces.jsonl")
    assert ids.code == 2 and "which were not kept: train with --keep-tokens true, or choose --as atif" in ids.err
    taken = command("trajectories", "export", "expert", "--as", "atif", "--out", "random")
    assert taken.code == 2 and "is there already" in taken.err
    assert command("trajectories", "import", "good.jsonl", "--out", "in").code == 0
    again = command("evaluate", "replay:in", "--env", "doors.py:Doors", "--panel", "expert/panel.json")
    assert again.code == 0 and "100.0%" in again.out


def test_an_environment_that_is_gone_costs_the_instructions_and_says_so(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("doors.py").write_text(DOORS, encoding="utf-8")
    assert command("evaluate", "expert", "--env", "doors.py:Doors", "--limit", 2, "--out", "expert").code == 0
    summary = Path("expert/summary.json")
    summary.write_text(summary.read_text().replace("doors.py:Doors", "gone.py:Doors"))
    told = command("trajectories", "export", "expert", "--as", "atif", "--out", "atif")
    assert told.code == 0 and "messages begin without its instructions" in told.out
    assert {one.about["system"] for one in read_any(Path("atif"))} == {None}
