"""Failed episodes that are laid to the wrong turn, or to a policy that did as the expert does."""

import json
import subprocess
import sys

import pytest

from benchmarks.environments import first_departures

DESK = ["--env", "manyturn/Desk-v0", "--env.args", '{pack = "telecom", difficulty = "tiny", users = 250}']


def test_calls_are_told_apart_by_tool_and_rule_and_clicks_by_what_they_lead_to():
    kinds = [first_departures.kind_of(action) for action in ("click[x2]", "click[xl]", "click[buy now]", "The day?")]
    assert kinds == ["open a product", "choose an option", "buy", "ask"]
    refusal = '{"name": "close", "arguments": {"answer": "R8"}}'
    assert first_departures.kind_of(refusal) == "close R8"


@pytest.mark.deep
def test_the_expert_never_departs_from_itself_and_random_play_departs_in_all_failed_episodes(tmp_path, monkeypatch):
    for policy in ("expert", "random"):
        folder = str(tmp_path / f"seed-{policy}" / "evaluation")
        words = ["evaluate", policy, *DESK, "--limit", "12", "--seed", "3", "--out", folder]
        subprocess.run([sys.executable, "-m", "manyturn", *words], check=True)
    out = tmp_path / "departures.json"
    words = [str(tmp_path), "--recipe", "desk-tiny", "--out", str(out)]
    monkeypatch.setattr("sys.argv", [first_departures.__file__, *words])
    first_departures.main()
    expert, random = sorted(json.loads(out.read_text())["runs"], key=lambda run: run["failed"])
    assert (expert["failed"], expert["of_failed"], expert["of_successful"]) == (0, {}, {})
    assert random["failed"] >= 10 and sum(random["of_failed"].values()) == random["failed"]
