"""The packages that formats come from read what we write in them."""

import json
from importlib.util import find_spec

from drawn_trajectories import trajectories
from hypothesis import given, settings
from needs import absent

from manyturn.agents.trajectories.conversation import of_exchanges
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.agents.trajectories.formats import atif, hub, inspect_logs, openenv_trace
from manyturn.agents.trajectories.trajectory import canonical, to_plain

FOUND = [
    of_exchanges(
        [("see", "say"), ("see more", "say more")], "x", "Rules.", **{"return": float(n), "member": n}, task="t"
    )
    for n in range(3)
] + [of_exchanges([("see", "say")], "y", None, split="test/hard", success=True, **{"return": 1.0})]


def needs(module: str) -> None:
    found = find_spec(module)
    if found is None or found.origin is None:  # a folder of tests may have its name
        absent(module.partition("_")[0].upper(), f"{module} is missing: pip install it in an environment of its own")


def test_harbors_own_models_accept_our_documents():
    needs("harbor")
    from harbor.models.trajectories import Trajectory

    @given(trajectories())
    @settings(max_examples=40)
    def accepted(one):
        theirs = Trajectory.model_validate(json.loads(canonical(atif.document(one))))
        back = atif.of_document(json.loads(json.dumps(theirs.to_json_dict(exclude_none=False))), "a.json")
        assert canonical(to_plain(back)) == canonical(to_plain(one))

    accepted()


def test_openenvs_own_model_accepts_our_traces():
    needs("openenv")
    from openenv.core.harness.training import TrainingTrace

    @given(trajectories())
    @settings(max_examples=100)
    def accepted(one):
        if one.ledger is None or any(branch.allowed for branch in one.ledger.branches):
            return
        for line in openenv_trace.lines_of([one]):
            theirs = TrainingTrace.model_validate_json(line)
            [turn] = json.loads(line)["turns"][:1]
            assert theirs.turns[0].completion_token_ids == turn["completion_token_ids"]
            back = openenv_trace.of_line(theirs.model_dump_json(), "line 1")
            assert canonical(to_plain(back)) == canonical(to_plain(one))

    accepted()


def test_inspect_reads_our_logs_and_we_read_its_own(tmp_path):
    needs("inspect_ai")
    from inspect_ai.log import read_eval_log, write_eval_log

    inspect_logs.write(tmp_path / "ours", FOUND)
    log = read_eval_log(str(next((tmp_path / "ours").iterdir())))
    assert log.status == "success" and len(log.samples) == 4 and log.results.scores[1].metrics["mean"].value == 1.0
    assert [one.text for one in log.samples[0].messages] == ["Rules.", "see", "say", "see more", "say more", ""]
    assert log.samples[3].scores["success"].value == 1
    write_eval_log(log, str(tmp_path / "theirs.json"))
    back = read_any(tmp_path / "theirs.json")  # in its own order
    assert {canonical(to_plain(one)) for one in back} == {canonical(to_plain(one)) for one in FOUND}
    for sample in log.samples:
        sample.metadata = {}
    write_eval_log(log, str(tmp_path / "foreign.json"))
    foreign = read_any(tmp_path / "foreign.json")
    said = [(one.episode["return"], [row["reply"] for row in one.turns]) for one in (*foreign, *FOUND)]
    assert sorted(said[:4]) == sorted(said[4:])


def test_datasets_loads_our_folder_split_by_split(tmp_path, monkeypatch):
    needs("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    from datasets import load_dataset

    hub.write(tmp_path / "set", FOUND)
    found = load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {"unknown": 3, "test_hard": 1}
    assert found["unknown"][1]["messages"][0] == {"role": "system", "content": "Rules."}
    assert found["unknown"]["reward"][:] == [0.0, 1.0, 2.0]
