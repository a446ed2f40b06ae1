"""verifiers' own evaluation of an exported package: other turns than ours, failures that count as rewards."""

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from expert_episode import episode  # pyright: ignore[reportMissingImports]
from needs_host import host  # pyright: ignore[reportMissingImports]
from served import FAULTY, UNSCORABLE  # pyright: ignore[reportMissingImports]

from manyturn.credit import Rollout
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.export.exported_env import Exported, episode_seed
from manyturn.integrations.prime_rl import FIELDS


@pytest.fixture(autouse=True)
def _verifiers() -> None:
    host("verifiers")


@contextlib.contextmanager
def model(scripts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """An endpoint whose replies are those of a script, which the conversation's first text names."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            first = next(message["content"] for message in said if message["role"] == "user")
            reply = scripts[first][sum(message["role"] == "assistant" for message in said)]
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            raw = json.dumps({**answer, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def installed(command: Any, env: str, folder: Path, *words: str) -> tuple[str, Exported]:
    """An environment exported by the command line and installed by pip: its name for vf-eval, and what it holds."""
    ended = command("export", env, "--as", "verifiers", "--out", folder / "package", "--limit", 3, *words)
    assert ended.code == 0, ended.err
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "site", folder / "package"], check=True)
    [package] = (folder / "site").glob("manyturn_*[!o]/")
    return package.name.replace("_", "-"), Exported.read(package)


def evaluated(name: str, folder: Path, url: str, *words: str) -> dict[str, Any]:
    """What verifiers' own command wrote of each task: its episode, by the task's id."""
    run = [Path(sys.executable).with_name("vf-eval"), name, "--no-push", "--no-rich", "-m", "m", "-o", folder / "out"]
    run += [
        "--run.dir",
        "one",
        "--client.base-url",
        url,
        "--client.api-key-var",
        "NO_KEY",
        "--env.taskset.split",
        "test",
    ]
    env = {**os.environ, "PYTHONPATH": str(folder / "site"), "NO_KEY": "none"}
    ended = subprocess.run([*run, *words], env=env, capture_output=True, text=True, check=False)
    file = folder / "out" / "one" / "traces.jsonl"
    assert file.exists(), ended.stdout + ended.stderr
    return {one["task"]["data"]["id"]: one for one in map(json.loads, file.read_text().splitlines())}


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_evaluation_plays_our_episodes(env, command, tmp_path):
    words = ("--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    name, world = installed(command, env, tmp_path, *words)
    tasks = world.tasks("test")
    expected = {task.id: (task, *episode(world, task, bool(i % 2))) for i, task in enumerate(tasks)}
    assert len({steps[0].observation for _, _, steps in expected.values()}) == len(tasks) == 3
    with model({steps[0].observation: actions for _, actions, steps in expected.values()}) as url:
        found = evaluated(name, tmp_path, url)
    assert found.keys() == expected.keys()
    for task, actions, steps in expected.values():
        one = found[task.id]
        [trace] = one["traces"]
        assert one["ok"] and not one["errors"] and one["task"]["data"]["content"] == task.content
        said = [node["message"]["content"] for node in trace["nodes"]]
        assert said[1::2] == [step.observation for step in steps[:-1]] and said[2::2] == actions
        assert said[0] == world.instructions
        told = trace["info"]["manyturn"]["turns"]
        assert [(turn["text"], turn["reward"], turn["parts"]) for turn in told] == [
            (step.observation, step.reward, dict(step.parts)) for step in steps[1:]
        ]
        earned = sum(reward["score"] * reward["weight"] for reward in trace["rewards"].values())
        assert earned == pytest.approx(sum(step.reward for step in steps)) and trace["rewards"]["turn"]["score"] < 0
        assert (trace["metrics"]["success"], trace["metrics"]["turns"]) == (1.0, len(actions))
        credit = trace["info"]["credit"]
        assert credit.keys() <= FIELDS and credit["anchors"] == [step.anchor for step in steps[:-1]]
        assert Rollout(group=0, **credit).episode_return() == pytest.approx(earned)


def test_a_lost_episode_is_an_error_and_has_no_reward(command, tmp_path):
    name, world = installed(command, FAULTY, tmp_path)
    harms = ("raise", "die", "sleep 60")
    first = [EnvHandle(world.name).reset(task, episode_seed(task)).observation for task in world.tasks("test")]
    with model({text: ["say 1", harm, "win"] for text, harm in zip(first, harms, strict=True)}) as url:
        found = evaluated(name, tmp_path, url, "--env.answer-seconds", "3", "--env.workers", "3")
    kinds = [found[task.id]["errors"][-1]["message"] for task in world.tasks("test")]
    assert "broken on purpose" in kinds[0] and not any(one["ok"] for one in found.values())
    assert not any(trace["rewards"] for one in found.values() for trace in one["traces"])


def test_a_reward_that_is_not_known_is_an_error(command, tmp_path):
    name, world = installed(command, UNSCORABLE, tmp_path)
    plays = {}
    for task in world.tasks("test"):
        here = EnvHandle(world.name)
        step, actions = here.reset(task, episode_seed(task)), list[str]()
        first, known = step.observation, True
        while not step.ended:
            actions.append("win")
            step = here.step("win")
            known = known and not math.isnan(step.reward)
        plays[first] = actions
        assert not known
    with model(plays) as url:
        found = evaluated(name, tmp_path, url)
    for one in found.values():
        assert not one["ok"] and "is not known" in one["errors"][-1]["message"]
        assert not any(trace["rewards"] for trace in one["traces"])
