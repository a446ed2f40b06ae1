"""Figures that do not know their environment: continued, compared and trained on under other rules in silence."""

import json
import os
import shutil
from pathlib import Path

import plugin_package
import pytest

import manyturn as mt
from manyturn.agents.evaluation.paired_comparison import read_evaluation
from manyturn.api.trajectory_formats import trajectories_of
from manyturn.envs.contract.options.options import ConfigError
from manyturn.report.evaluation import evaluation_head
from manyturn.report.run import run_head
from manyturn.trainers.record.run_folder import read_metrics

ROOT = Path(__file__).parents[2]
DOORS = (ROOT / "tests" / "trainers" / "doors.py").read_text(encoding="utf-8")
DOORS = DOORS.replace('COLOURS = ("red", "blue", "green", "white", "black")', "from door_rules import COLOURS, OPENS")
DOORS = DOORS.replace('"It opens."', "OPENS").replace("import manyturn as mt\n", "")
DOORS = DOORS.replace("from door_rules import", "import manyturn as mt\nfrom door_rules import")
RULES = 'COLOURS = ("red", "blue", "green", "white", "black")\nOPENS = "It opens."\n'
OTHER_RULES = RULES.replace("It opens", "It swings open")
ON_DOORS = ("--env", "doors.py:Doors", "--limit", 2)
PLUGIN = (ROOT / "tests" / "manyturn" / "six_parts.py").read_text(encoding="utf-8")
MAZE, COST = "manyturn/Maze-v0", "turn_cost"
SHORT = ("--steps", 1, "--warmup.episodes", 4, "--warmup.max-updates", 1, "--warmup.must-succeed", "false")
SHORT = (*SHORT, "--rollout.tasks", 2, "--rollout.group", 2, "--evaluation.limit", 2, "--threads", 1)


def doors(folder: Path, rules: str = RULES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "doors.py").write_text(DOORS, encoding="utf-8")
    (folder / "door_rules.py").write_text(rules, encoding="utf-8")
    return folder


def identity(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["env_identity"]


@pytest.fixture
def manyturn(forked):
    return lambda cwd, *words, env=None: forked("-m", "manyturn", *words, cwd=cwd, env=env)


def test_an_evaluation_goes_on_elsewhere_but_not_over_another_file_and_compare_names_it(manyturn, tmp_path):
    here, there = doors(tmp_path / "here"), doors(tmp_path / "there")
    assert manyturn(here, "panel", "make", "doors.py:Doors", "--limit", 2, "--out", "p.json").returncode == 0
    assert manyturn(here, "evaluate", "expert", *ON_DOORS, "--out", "a").returncode == 0
    begun = identity(here / "a")
    assert begun["id"] == "doors.py:Doors" and begun["files"].keys() == {"doors.py", "door_rules.py"}
    assert str(tmp_path) not in json.dumps(begun)
    lines = (here / "a" / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (here / "a" / "episodes.jsonl").write_bytes(b"".join(lines[:2]))  # the second episode is yet to be played
    shutil.copytree(here / "a", there / "a")
    assert manyturn(there, "evaluate", "expert", *ON_DOORS, "--out", "a").returncode == 0

    doors(here, OTHER_RULES)
    refused = manyturn(here, "evaluate", "expert", *ON_DOORS, "--out", "a")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert (
        "door_rules.py differs" in refused.stderr
        and "--out" in refused.stderr
        and "doors.py differs" not in refused.stderr
    )

    played = manyturn(here, "evaluate", "expert", *ON_DOORS[:2], "--panel", "p.json", "--out", "b")
    verified = manyturn(here, "panel", "verify", "p.json", "--env", "doors.py:Doors")
    assert (played.returncode, verified.returncode) == (0, 0)
    assert "door_rules.py differs" in played.stderr and "door_rules.py differs" in verified.stdout
    compared = manyturn(here, "compare", there / "a", "b", "--out", "c.json")
    assert compared.returncode == 0 and "door_rules.py differs" in compared.stdout
    [one] = json.loads((here / "c.json").read_text())["comparisons"]
    assert one["env_differences"] == ["door_rules.py differs"]


def test_wrapper_options_count_and_an_identity_that_is_absent_is_unknown(tmp_path):
    for name, cost in (("a", 0.1), ("b", 0.2)):
        mt.evaluate("random", MAZE, limit=2, wrappers=[{"name": COST, "cost": cost}], out=tmp_path / name)
    with pytest.raises(ConfigError, match=rf"{COST}.*--out"):
        mt.evaluate("random", MAZE, limit=2, wrappers=[{"name": COST, "cost": 0.2}], out=tmp_path / "a")
    found = identity(tmp_path / "a")
    assert found["version"] == 0 and found["packages"].keys() == {"manyturn"}
    assert found["files"].keys() == {"manyturn/envs/classics/"}
    [words] = mt.compare(tmp_path / "a", tmp_path / "b")["comparisons"][0]["env_differences"]
    assert '"cost": 0.1' in words and '"cost": 0.2' in words

    summary = json.loads((tmp_path / "b" / "summary.json").read_text())
    del summary["env_identity"]
    (tmp_path / "b" / "summary.json").write_text(json.dumps(summary))
    compared = mt.compare(tmp_path / "a", tmp_path / "b")
    assert compared["comparisons"][0]["env_differences"] is None
    assert any("unknown" in note and str(tmp_path / "b") in note for note in compared["notes"])


def test_the_file_of_a_wrapper_from_a_plugin_counts(manyturn, tmp_path):
    site = plugin_package.install(tmp_path / "site", "six_parts", PLUGIN)
    env = {**os.environ, "PYTHONPATH": str(site)}
    words = ("evaluate", "random", "--env", MAZE, "--limit", 2, "--wrappers", '[{name = "haste"}]', "--out", "a")
    assert manyturn(tmp_path, *words, env=env).returncode == 0
    (site / "six_parts.py").write_text(PLUGIN.replace('info["turn"] == 1', 'info["turn"] == 2'))
    refused = manyturn(tmp_path, *words, env=env)
    assert refused.returncode == 2 and "six_parts.py differs" in refused.stderr and "--out" in refused.stderr


@pytest.mark.deep
def test_a_run_goes_on_in_another_environment_only_where_that_is_accepted(manyturn, tmp_path):
    folder, run = doors(tmp_path / "here"), tmp_path / "here" / "run"
    trained = manyturn(folder, "train", "doors.py:Doors", *SHORT, "--out", run)
    assert trained.returncode == 0, trained.stderr
    before = identity(run)
    assert manyturn(folder, "train", "--resume", run, "--accept-env").returncode == 0  # as --accept-config is: harmless
    played = manyturn(folder, "evaluate", run, "--limit", 2)
    assert played.returncode == 0 and "note:" not in played.stderr
    alone = manyturn(folder, "train", "doors.py:Doors", "--accept-env")
    assert alone.returncode == 2 and "--resume" in alone.stderr

    doors(folder, OTHER_RULES)
    refused = manyturn(folder, "train", "--resume", run, "--steps", 2)
    assert refused.returncode == 2 and "door_rules.py differs" in refused.stderr and "--accept-env" in refused.stderr
    with pytest.raises(ConfigError, match=r"door_rules\.py differs.*--accept-env"):
        mt.resume(run, steps=2)
    assert identity(run) == before
    played = manyturn(folder, "evaluate", run, "--limit", 2)
    assert played.returncode == 0 and played.stderr.count("door_rules.py differs") == 1

    summary = mt.resume(run, steps=2, accept_env=True).summary
    [change] = summary["env_changes"]
    assert (change["step"], change["before"], change["differences"]) == (1, before, ["door_rules.py differs"])
    assert summary["env_identity"] == identity(run) != before
    told = {line["step"]: line.get("env_changed") for line in read_metrics(run) if line["phase"] == "train"}
    assert told == {1: None, 2: "door_rules.py differs"}
    assert any("after step 1: door_rules.py differs" in warning for warning in run_head(run).warnings)
    played = {one.episode["stage"]: one.about["env_identity"] for one in trajectories_of(run, lambda note: None)}
    assert sorted(played.items()) == sorted({"train/1": before, "train/2": summary["env_identity"]}.items())


@pytest.mark.deep
def test_failures_in_another_environment_choose_no_tasks_in_silence_and_a_panel_of_failures_says_so(manyturn, tmp_path):
    folder = doors(tmp_path / "here")
    (folder / "doors.py").write_text(DOORS + "\n\nclass Gates(Doors):\n    pass\n", encoding="utf-8")
    begun = manyturn(folder, "evaluate", "random", "--env", "doors.py:Doors", "--limit", 12, "--out", "a")
    assert begun.returncode == 0, begun.stderr
    for words in (("panel", "make"), ("evaluate", "expert", "--env"), ("train",)):
        refused = manyturn(folder, *words, "doors.py:Gates", "--tasks", "failed:a")
        assert refused.returncode == 2 and "doors.py:Doors" in refused.stderr and "doors.py:Gates" in refused.stderr

    made = manyturn(folder, "panel", "make", "doors.py:Doors", "--tasks", "failed:a")
    assert made.returncode == 0 and made.stdout.count("random failed") == 1 and not made.stderr
    doors(folder, OTHER_RULES)
    (folder / "doors.py").write_text(DOORS + "\n\nclass Gates(Doors):\n    pass\n", encoding="utf-8")
    for choice in (("--tasks", "failed:a"), ("--panel", "panel.json")):
        policies = ("evaluate", "expert", "random", "--env", "doors.py:Doors", "--out", choice[0].strip("-"))
        played = manyturn(folder, *policies, *choice)
        assert played.returncode == 0 and played.stdout.count("random failed") == 1
        assert played.stderr.count("door_rules.py differs") == 1
    compared = manyturn(folder, "compare", "a", "tasks/expert", "--shared")
    assert compared.returncode == 0 and compared.stdout.count("random failed") == 1
    assert any(
        "random failed" in line for line in evaluation_head(read_evaluation(folder / "tasks" / "expert")).warnings
    )
