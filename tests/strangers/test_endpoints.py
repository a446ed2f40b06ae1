"""A model behind an endpoint, evaluated as newcomers do: what the server counts, cuts and refuses reaches them."""

import json
from pathlib import Path
from typing import Any

import pytest


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def test_usage_is_the_servers_own_count(command, server, doors, tmp_path):
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 6, "--out", tmp_path / "out")
    assert found.code == 0, found.err
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 1 and len(server.asked) == 6 * 4
    assert told["tokens"]["prompt_mean"] * 6 == pytest.approx(server.prompts)
    assert told["tokens"]["reply_mean"] * 6 == pytest.approx(server.replies)
    assert "reply tokens" in found.out


def test_replies_that_the_server_cuts_are_counted(command, server, doors, tmp_path):
    server.thought = "so which door is it " * 20
    words = ["--env", doors, "--limit", 2, "--out", tmp_path / "out", "--sampling.max-tokens", 40]
    found = command("evaluate", "openai:toy", *words)
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 0 and told["cut_reply_rate"] == 1
    assert "cut" in found.out


@pytest.mark.parametrize("status", [429, 500])
def test_faults_that_pass_cost_nothing(command, server, doors, tmp_path, status):
    server.status = lambda number: status if number % 5 == 1 else 200
    words = ["--endpoint.first-wait", 0.01, "--endpoint.longest-wait", 0.02]
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 4, "--out", tmp_path / "out", *words)
    assert found.code == 0, found.err
    assert summary(tmp_path / "out")["success"]["mean"] == 1 and server.statuses[status] > 2
