"""A model behind an endpoint, evaluated as newcomers do: what the server counts, cuts and refuses reaches them."""

import json
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import calling, completion, reading


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


def test_an_action_that_a_thought_considers_is_not_played(command, model, doors, tmp_path):
    model.thought = "maybe <action>open black</action>, or <action>fly</action>?"
    ended = command("evaluate", "openai:toy", "--env", doors, "--limit", 2, "--out", tmp_path / "out")
    figures = summary(tmp_path / "out")
    assert figures["success"]["mean"] == 1 and figures["turns"]["mean"] == 4, ended.out
    assert figures["invalid_action_rate"] == 0


def test_replies_that_the_server_cuts_are_counted_and_the_option_is_named(command, model, doors, tmp_path):
    model.thought = "so which door is it " * 20
    words = ["--env", doors, "--limit", 2, "--out", tmp_path / "out", "--sampling.max-tokens", 40]
    found = command("evaluate", "openai:toy", *words)
    told = summary(tmp_path / "out")
    assert told["success"]["mean"] == 0 and told["cut_reply_rate"] == 1
    assert "cut" in found.out and "max-tokens" in found.out + found.err


NATIVE = ("--env", "manyturn/Search-v0", "--agent.format", "native_tools")


@pytest.mark.parametrize(
    ("answer", "words", "cause"),
    [
        (completion(None), (), "100.0% of the replies were empty"),
        (completion(" \n"), (), "100.0% of the replies were empty"),
        (completion(None, finish="content_filter"), (), "content filter"),
        (completion(None, refusal="I will not."), (), "refusals of the model"),
        (completion(None, finish="length"), (), "give --sampling.max-tokens more"),
        (calling(("search", '{"query": re')), NATIVE, "arguments that cannot be read"),
        (completion("open red"), (), "no reply had the tags <action>"),
    ],
    ids=["empty", "blank", "filtered", "refused", "cut", "arguments", "tags"],
)
def test_one_remark_names_why_replies_mean_nothing(command, endpoint_server, doors, answer, words, cause):
    """Of whatever it was, the remark said that no reply had the tags, and proposed another format."""
    endpoint_server.script = [(200, answer, {})]
    ended = command("evaluate", "openai:toy", *(words or ("--env", doors)), "--limit", 2)
    assert ended.code == 0, ended.err
    lines = [line for line in ended.out.splitlines() if "of the replies" in line or "is invalid:" in line]
    assert len(lines) == 1 and cause in lines[0], ended.out
    assert ("free_text" in lines[0]) == (cause == "no reply had the tags <action>")


def test_the_commoner_cause_comes_first_in_the_remark(command, endpoint_server, doors):
    answers = [completion(None), completion(None), completion(None, finish="content_filter")]
    endpoint_server.script = [lambda handler: (200, answers[len(endpoint_server.requests) % 3], {})]
    ended = command("evaluate", "openai:toy", "--env", doors, "--limit", 4, "--endpoint.concurrency", 1)
    [line] = [line for line in ended.out.splitlines() if "of the replies" in line]
    assert line.index("were empty") < line.index("content filter"), line


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
