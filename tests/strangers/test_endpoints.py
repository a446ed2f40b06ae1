"""A model behind an endpoint, evaluated as newcomers do: what the server counts, cuts and refuses reaches them."""

import json
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import reading


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def test_usage_is_the_servers_own_count(command, endpoint_server, model, doors, tmp_path):
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 6, "--out", tmp_path / "out")
    assert found.code == 0, found.err
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 1 and len(endpoint_server.requests) == 6 * 4
    assert told["tokens"]["prompt_mean"] * 6 == pytest.approx(model.prompts)
    assert told["tokens"]["reply_mean"] * 6 == pytest.approx(model.replies)
    assert "reply tokens" in found.out


def test_thinking_fits_into_the_longest_reply_and_is_read_past(command, model, doors, tmp_path):
    model.thought = "so which door is it " * 100
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 2, "--out", tmp_path / "out")
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 1 and told["invalid_action_rate"] == 0, found.out
    assert told["tokens"]["reply_mean"] > 4 * 1000 and told["cut_reply_rate"] == 0


def test_replies_that_the_server_cuts_are_counted_and_the_option_is_named(command, model, doors, tmp_path):
    model.thought = "so which door is it " * 20
    words = ["--env", doors, "--limit", 2, "--out", tmp_path / "out", "--sampling.max-tokens", 40]
    found = command("evaluate", "openai:toy", *words)
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 0 and told["cut_reply_rate"] == 1
    assert "cut" in found.out and "max-tokens" in found.out + found.err


def test_success_with_replies_that_count_as_invalid_is_named(command, model, doors, tmp_path):
    model.reply = "{}"  # without the tags that are asked for
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 2, "--out", tmp_path / "out")
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 1 and told["invalid_action_rate"] == 1
    assert "free_text" in found.out + found.err


@pytest.mark.parametrize(("status", "fix"), [(401, "OPENAI_API_KEY"), (404, "model's name")])
def test_a_refusal_is_not_asked_for_twice(command, endpoint_server, doors, tmp_path, status, fix):
    endpoint_server.script = [(status, b'{"error": {"message": "no"}}', {})]
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 4, "--out", tmp_path / "out")
    assert found.code == 2 and str(status) in found.err and fix in found.err and "manyturn check" not in found.err
    assert len(endpoint_server.requests) == 1


@pytest.mark.parametrize("status", [429, 500])
def test_faults_that_pass_cost_nothing(command, endpoint_server, model, doors, tmp_path, status):
    well = reading(model)
    endpoint_server.script = [entry for _ in range(4) for entry in (well, (status, b"", {}))] + [well]
    words = ["--endpoint.first-wait", 0.01, "--endpoint.longest-wait", 0.02]
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 4, "--out", tmp_path / "out", *words)
    assert found.code == 0, found.err
    assert summary(tmp_path / "out")["success"]["mean"] == 1 and len(endpoint_server.requests) == 4 * 4 + 4


@pytest.mark.parametrize("name", ["gpt-4o", "openai"])
def test_the_name_of_a_model_alone_leads_to_the_endpoint(command, doors, name):
    found = command("evaluate", name, "--env", doors, "--limit", 2)
    assert found.code == 2 and "openai:" in found.err, found.err


def test_an_address_without_its_scheme_is_understood(command, endpoint_server, model, doors, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint_server.url.removeprefix("http://"))
    found = command("evaluate", "openai:toy", "--env", doors, "--limit", 2)
    assert found.code == 0 and len(endpoint_server.requests) == 8, found.err
