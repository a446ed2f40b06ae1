"""Reports of evaluations that pair what does not belong together, or leave out figures that the summary has."""

import asyncio
import dataclasses
import json
import shutil
from collections import Counter

import pytest
from report_format import checked, names_of

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.evaluation.paired_comparison import CompareError, compare, read_evaluation
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.records.episode_rows import EPISODES, read_episodes, read_turns, turn_schema, write_table
from manyturn.envs.contract.tasks.panel import Panel, make_panel
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.report import document as documents
from manyturn.report.document import comparison_document, document_of
from manyturn.report.report_head import number

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"


def test_an_evaluation_shows_its_summary(evaluations):
    document = document_of(evaluations[1])
    summary = json.loads((evaluations[1] / "summary.json").read_text())
    assert len(checked(document)) == 12 and document.plain["kind"] == "evaluation"
    success = document.plain["figures"][0]
    assert [success[key] for key in ("value", "low", "high", "n")] == [
        *(number(summary["success"][key]) for key in ("mean", "ci_low", "ci_high")),
        6,
    ]
    assert ["panel's hash", summary["panel"]["hash"]] in document.plain["facts"]
    assert document.plain["episodes"]["success"] == [
        r["success"] for r in read_episodes(evaluations[1] / "episodes.parquet")
    ]


def test_a_comparison_pairs_episodes_of_the_same_task(evaluations):
    document = comparison_document(evaluations)
    assert len(checked(document)) == 24 and document.plain["sources"] == ["expert", "chance"]
    names = names_of(document)
    assert {name[1:] for name in names if name[0] == 0} == {name[1:] for name in names if name[0] == 1}
    found = compare([read_evaluation(path) for path in evaluations])["comparisons"][0]
    [difference] = [figure for figure in document.plain["figures"] if figure["name"] == "difference"]
    assert difference["value"] == number(found["success"]["difference"])
    worse = next(table for table in document.plain["tables"] if table["title"].startswith("Tasks on which"))
    assert [row[0] for row in worse["rows"]] == [task["task"] for task in found["regressions"]]


def test_reward_parts_stand_in_reports_of_evaluations_and_comparisons(tmp_path, evaluations):
    async def play(name, noise):
        async with open_seats(MAZE, wrappers=[{"name": "turn_cost", "cost": 0.25}], limit=8) as seats:
            panel = make_panel(seats.tasks("test"), MAZE, "test", 3)
            options = {"repeats": 1, "seed": 1, "max_turns": 50, "label": name}
            return await evaluate(seats, Scripted(noise), EvaluationPlan(panel, **options), out=tmp_path / name)

    expert, chance = (asyncio.run(play(*policy)).summary["parts"] for policy in (("expert", 0.0), ("chance", 1.0)))
    tables = {found["title"]: found["rows"] for found in document_of(tmp_path / "expert").plain["tables"]}
    assert [row[0] for row in tables["Reward parts"]] == ["outcome", "turn"]
    assert tables["Reward parts"][1][1] == pytest.approx(expert["turn"]["mean"], rel=1e-4)
    both = comparison_document([tmp_path / "expert", tmp_path / "chance"])
    checked(both)
    tables = {found["title"]: found["rows"] for found in both.plain["tables"]}
    means = tables["Reward parts, mean of an episode"]
    assert [row[2] for row in means] == pytest.approx([expert["turn"]["mean"], chance["turn"]["mean"]], rel=1e-4)
    [outcome, turn] = tables["Reward parts against the first, paired by task"]
    assert turn[:2] == ["chance", "turn"]
    assert turn[2] == pytest.approx(chance["turn"]["mean"] - expert["turn"]["mean"], rel=1e-4)
    assert outcome[2] == pytest.approx(chance["outcome"]["mean"] - 1, rel=1e-4)
    alone = [found["title"] for found in document_of(evaluations[0]).plain["tables"]]
    assert "Reward parts" not in alone, "the outcome is all there is"


def test_a_comparison_calls_one_task_by_one_name(evaluations, tmp_path):
    """Panels may give one problem two names; episodes are paired by the problem."""
    other = shutil.copytree(evaluations[1], tmp_path / "other")
    panel = Panel.from_json((other / "panel.json").read_text())
    panel = dataclasses.replace(panel, tasks=tuple(f"renamed/{task}" for task in panel.tasks))
    panel.save(other / "panel.json")
    summary = json.loads((other / "summary.json").read_text())
    summary["panel"]["hash"] = panel.hash
    (other / "summary.json").write_text(json.dumps(summary))
    for name, read, schema in (("episodes", read_episodes, EPISODES), ("turns", read_turns, turn_schema())):
        rows = [{**row, "task": f"renamed/{row['task']}"} for row in read(other / f"{name}.parquet")]
        write_table(other / f"{name}.parquet", rows, schema)
    with pytest.raises(CompareError, match="--shared"):
        comparison_document([evaluations[0], other])
    names = names_of(comparison_document([evaluations[0], other], shared=True))
    assert {name[1:] for name in names if name[0] == 0} == {name[1:] for name in names if name[0] == 1}


def test_a_comparison_leaves_out_a_task_for_all_or_for_none(evaluations, monkeypatch):
    monkeypatch.setattr(documents, "ENCLOSED", 10)
    document = comparison_document([*evaluations, evaluations[0]])
    assert Counter(Counter(task for _, _, task, _ in names_of(document)).values()) == {6: 1}
    assert any(text.startswith("shows 6 of 36") for text in document.plain["warnings"])
    assert len(set(document.plain["sources"])) == 3
