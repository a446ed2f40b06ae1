"""Evaluations from the command line that would not be of the policy, the world or the rewards that were meant."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from manyturn.agents.evaluation.paired_comparison import compare, read_evaluation
from manyturn.agents.records.episode_rows import read_turns
from manyturn.api.evaluation import Settings, _world
from manyturn.api.named_policy import find_policy
from manyturn.trainers.recipe.role_config import LONGEST_CONTEXT

SLOW = """
import time
import manyturn as mt

class Slow(mt.TextEnv):
    def tasks(self, split):
        return [mt.Task(f"{split}/{number}", split, {"number": number}) for number in range(4)]

    def begin(self, task, rng):
        return "Say go."

    def respond(self, action):
        time.sleep(0.4)
        return self.succeed("Yes.")

    def admissible(self):
        return ["go"]
"""
COST = 0.25  # what the run's wrapper takes for each turn


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def cost_of_turns(found: dict[str, Any]) -> float:
    """What was taken for turns, in an environment that rewards success with 1 and nothing else."""
    return found["success"]["mean"] - found["return"]["mean"]


def test_a_run_is_paid_as_it_was_trained_unless_asked_otherwise(command, tiny_run, tmp_path):
    asked = {"own": [], "none": ["--wrappers", "[]"], "dear": ["--wrappers", '[{name = "turn_cost", cost = 1.0}]']}
    for name, words in asked.items():
        longer = ("--sampling.max-tokens", 100)  # so that some replies end by themselves
        assert command("evaluate", tiny_run, "--limit", 4, "--out", tmp_path / name, *longer, *words).code == 0
    found = {name: summary(tmp_path / name) for name in asked}
    for name, cost in (("own", COST), ("none", 0), ("dear", 1)):
        ended = 1 - found[name]["cut_reply_rate"]  # a cut reply does not reach the environment, which charges nothing
        assert ended > 0 and cost_of_turns(found[name]) == pytest.approx(cost * ended * found[name]["turns"]["mean"])
    assert found["own"]["success"] == found["none"]["success"], "rewards decide nothing that is played"


def test_what_nobody_keeps_is_said_before_it_is_missed(command, tmp_path):
    words = ["evaluate", "random", "--env", "manyturn/Maze-v0", "--limit", 2]
    without, kept = command(*words), command(*words, "--out", tmp_path)
    assert "nothing is kept: --out FOLDER keeps" in without.out and "nothing is kept" not in kept.out


def test_a_reward_of_0_or_1_gets_no_interval_below_0(command, tmp_path):
    for policy in ("random", "expert"):
        words = ["--env", "manyturn/Maze-v0", "--limit", 20, "--out", tmp_path / policy]
        assert command("evaluate", policy, *words).code == 0
    found = summary(tmp_path / "random")
    assert 0 < found["success"]["mean"] < 0.3, "seldom enough for an interval by the spread to reach below 0"
    assert found["return"] == found["parts"]["outcome"] == found["success"]
    shown = compare([read_evaluation(tmp_path / policy) for policy in ("random", "expert")])["policies"][0]
    assert shown["return"] == shown["parts"]["outcome"] == shown["success"]


def test_an_evaluation_is_not_continued_with_other_rewards(command, tiny_run, tmp_path):
    assert command("evaluate", "random", "--env", f"{tiny_run.parent}/doors.py:Doors", "--out", tmp_path).code == 0
    words = ["--env", f"{tiny_run.parent}/doors.py:Doors", "--out", tmp_path, "--wrappers", '[{name = "turn_cost"}]']
    refused = command("evaluate", "random", *words)
    assert refused.code == 2 and "turn_cost" in refused.err and "--out" in refused.err


def test_the_runs_own_environment_by_another_path_keeps_its_world(tiny_run):
    candidate = find_policy(str(tiny_run), {})
    assert _world("elsewhere/doors.py:Doors", Settings(), candidate)[1] == candidate.wrappers != ()
    assert _world("manyturn/Maze-v0", Settings(), candidate) == ({}, ())


def test_sampling_of_a_run_can_be_changed_and_stands_in_the_result(command, tiny_run, tmp_path):
    words = ["--limit", 2, "--out", tmp_path, "--sampling.temperature", "0"]
    assert command("evaluate", tiny_run, *words).code == 0
    assert summary(tmp_path)["sampling"] == {"temperature": 0, "max_tokens": 8}, "what is not given stays the run's"


def test_replies_of_a_run_that_were_cut_are_counted_and_shown(command, tiny_run, tmp_path):
    found = command("evaluate", tiny_run, "--limit", 8, "--out", tmp_path, "--sampling.max-tokens", 3)
    assert found.code == 0
    turns = read_turns(tmp_path / "turns.parquet")
    cut = sum(turn["cut"] for turn in turns)
    assert cut > 0 and all(turn["reply_tokens"] == 3 for turn in turns if turn["cut"])
    assert summary(tmp_path)["cut_reply_rate"] == pytest.approx(cut / len(turns))
    assert f"cut replies {cut / len(turns):.1%}" in " ".join(found.out.split())


def test_the_longest_context_of_a_model_is_its_own(command, tiny_run, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny_run / "checkpoints" / "step_000001" / "model", model)
    assert find_policy(str(model), {}).policy.config.max_context == 256
    assert find_policy(str(model), {"agent": {"max_context": 100}}).policy.config.max_context == 100
    refused = command("evaluate", model, "--env", "manyturn/Maze-v0", "--agent.max-context", 257)
    assert refused.code == 2 and "knows 256 positions" in refused.err
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 10**6}))
    assert find_policy(str(model), {}).policy.config.max_context == LONGEST_CONTEXT


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An endpoint on the loopback address that always goes north, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            message = {"role": "assistant", "content": "go north"}
            answer = {"choices": [{"message": message, "finish_reason": "length" if len(asked) % 2 else "stop"}]}
            answer["usage"] = {"prompt_tokens": 10 * len(asked), "completion_tokens": 3}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", asked
    server.shutdown()
    server.server_close()


def test_options_of_agent_sampling_and_endpoint_reach_the_model(command, endpoint, tmp_path):
    url, asked = endpoint
    options = {
        "--endpoint.base-url": url,
        "--endpoint.length-field": "max_completion_tokens",
        "--agent.format": "free_text",
        "--agent.context": "window",
        "--agent.context.turns": 1,
        "--agent.show-admissible": "true",
        "--sampling.max-tokens": 5,
        "--sampling.temperature": 0.5,
    }
    words = [word for pair in options.items() for word in pair]
    found = command("evaluate", "openai:m", "--env", "manyturn/Maze-v0", "--limit", 1, "--out", tmp_path, *words)
    assert found.code == 0, found.err
    assert len(asked) == summary(tmp_path)["turns"]["mean"] > 3
    for body in asked:
        assert body["model"] == "m" and body["max_completion_tokens"] == 5 and body["temperature"] == 0.5
        assert "Admissible commands: " in body["messages"][-1]["content"]
        assert sum(message["role"] == "assistant" for message in body["messages"]) <= 1
    found = summary(tmp_path)
    assert found["tokens"]["prompt_total"] == sum(10 * (n + 1) for n in range(len(asked)))
    assert found["tokens"]["reply_total"] == 3 * len(asked)
    assert found["cut_reply_rate"] == pytest.approx((len(asked) + 1) // 2 / len(asked))
    agent = found["agent"]
    assert agent["context"] == {"name": "window", "turns": 1} and agent["format"] == {"name": "free_text"}


def test_turns_that_waited_for_other_episodes_of_their_worker_are_named(command, endpoint, tmp_path):
    """Slow commands of four episodes in one worker once looked like a slow environment."""
    (tmp_path / "slow.py").write_text(SLOW)
    words = ["--env", f"{tmp_path}/slow.py:Slow", "--split", "train", "--workers", 1, "--out", tmp_path / "out"]
    found = command("evaluate", "openai:m", "--endpoint.base-url", endpoint[0], *words)
    assert found.code == 0, found.err
    assert summary(tmp_path / "out")["seconds"]["behind"] > 1
    assert re.search(r"turns waited \d+ s for other episodes of their worker: --workers", found.out)
