"""NeMo Gym's real agent and collection of rollouts: other turns than ours, failures that count as rewards."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]
from served import FAULTY, UNSCORABLE, process, transcript  # pyright: ignore[reportMissingImports]

PAGE = (Path(__file__).parents[3] / "docs" / "serving-nemo-gym.md").read_text(encoding="utf-8")
TOKEN = "0123456789abcdef-a-token"


@pytest.fixture(autouse=True)
def _nemo_gym() -> None:
    host("nemo_gym")


def response(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    about = {"id": "r", "created_at": 0.0, "model": "m", "object": "response"}
    return {**about, "output": [message], "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}


@contextlib.contextmanager
def model_and_head(script: Mapping[str, list[str]], config: dict[str, Any]) -> Iterator[int]:
    """A model that says what a script has, by the ``metadata`` of a row, and the head that knows all servers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say(config)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            replies = sum(item.get("role") == "assistant" for item in asked["input"])
            self.say(response(script[asked["metadata"]["script"]][replies]))

        def say(self, what: Any) -> None:
            body = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.asynccontextmanager
async def listening(app: Any) -> AsyncIterator[int]:
    """An application of the host's, at a port of this process."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    work = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await work


def block(kind: str, server: str, address: str, port: int, **words: Any) -> dict[str, Any]:
    return {kind: {server: {"entrypoint": "app.py", "host": address, "port": port, **words}}}


async def collected(
    url: str, rows: list[dict[str, Any]], script: Mapping[str, list[str]], observed: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What NeMo Gym's collection makes of rows, in their order, and what it says of them together."""
    from environment_servers.legacy_agent.app import (
        LegacyAgentEnvironmentServer,
        LegacyAgentEnvironmentServerConfig,
    )
    from nemo_gym import server_utils
    from nemo_gym.config_types import AggregateMetrics, AggregateMetricsRequest
    from nemo_gym.rollout_collection import RolloutCollectionHelper
    from nemo_gym.server_utils import (
        BaseServerConfig,
        GlobalAIOHTTPAsyncClientConfig,
        ServerClient,
        set_global_aiohttp_client,
    )
    from omegaconf import OmegaConf
    from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumAgentConfig

    address, _, port = url.partition("//")[2].rpartition(":")
    named = {
        "resources_server": {"type": "resources_servers", "name": "world"},
        "model_server": {"type": "responses_api_models", "name": "policy_model"},
        "max_steps": 100,
    }
    relayed = {"agent_server": {"type": "responses_api_agents", "name": "world_agent"}}
    config: dict[str, Any] = {"observability_enabled": observed}
    set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
    with model_and_head(script, config) as head_port:
        head = BaseServerConfig(host="127.0.0.1", port=head_port)
        config["policy_model"] = block("responses_api_models", "policy_model", "127.0.0.1", head_port)
        config["world"] = block("resources_servers", "world", address, int(port))
        client = ServerClient(head_server_config=head, global_config_dict=OmegaConf.create(config))
        about = {"entrypoint": "app.py", "host": "127.0.0.1", "port": 0}
        agent = GymnasiumAgent(config=GymnasiumAgentConfig(name="world_agent", **about, **named), server_client=client)
        relay = LegacyAgentEnvironmentServer(
            config=LegacyAgentEnvironmentServerConfig(name="relay", **about, **relayed), server_client=client
        )
        apps = [agent.setup_webserver(), relay.setup_webserver()]
        agent.setup_exception_middleware(apps[0])  # as run_webserver does
        relay.setup_exception_middleware(apps[1])
        async with listening(apps[0]) as agent_port, listening(apps[1]) as relay_port:
            local = "127.0.0.1"
            config["world_agent"] = block("responses_api_agents", "gymnasium_agent", local, agent_port, **named)
            config["relay"] = block("environment_servers", "legacy_agent", local, relay_port, **relayed)
            client.global_config_dict = OmegaConf.create(config)
            sent = [
                {**row, "_ng_task_index": number, "_ng_rollout_index": 0, "agent_ref": {"name": "world_agent"}}
                for number, row in enumerate(rows)
            ]
            helper = RolloutCollectionHelper()
            results: dict[int, dict[str, Any]] = {}
            for work in helper.run_examples(sent, head_server_config=head, route_failures_to_sidecar=True):
                row, result = await work
                results[row["_ng_task_index"]] = result
            done = [{**result, "_ng_task_index": number} for number, result in sorted(results.items())]
            scored = [result for result in done if "reward" in result]
            answer = await client.post(
                server_name="relay",
                url_path="/aggregate_metrics",
                json=AggregateMetricsRequest(verify_responses=json.loads(json.dumps(scored))),
            )
            together = AggregateMetrics.model_validate(await answer.json())
    await server_utils.get_global_aiohttp_client().close()
    server_utils._GLOBAL_AIOHTTP_CLIENT = None  # its own way out begins a loop, and this is one
    return done, together.model_dump()


def row(name: str, **drawn: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": [], "metadata": {"script": name}}, "manyturn": drawn}


def said(result: dict[str, Any], role: str) -> list[str]:
    """What one side said, in order."""
    items = [*result["responses_create_params"]["input"], *result["response"]["output"]]
    texts = [item["content"] for item in items if item["role"] == role]
    return [text if isinstance(text, str) else "".join(part["text"] for part in text) for text in texts]


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_agent_plays_our_episodes(env):
    expected = {str(seed): transcript(env, seed, garbage=seed % 2) for seed in range(4)}
    script = {name: [turn.action for turn in turns[1:]] for name, turns in expected.items()}
    rows = [row(name, seed=int(name)) for name in expected]
    with process(env, "nemo-gym", "--workers", "1") as (url, _):
        results, together = asyncio.run(collected(url, rows, script, observed=env.endswith("Shop-v0")))
    for result, turns in zip(results, expected.values(), strict=True):
        assert said(result, "user") == [turn.text for turn in turns[:-1]]
        assert said(result, "assistant") == [turn.action for turn in turns[1:]]
        assert result["reward"] == sum(turn.reward for turn in turns)
        facts = result["info"]
        assert (facts["text"], facts["reward"], facts["reward_parts"]) == (
            turns[-1].text,
            turns[-1].reward,
            turns[-1].parts,
        )
        assert (result["terminated"], result["truncated"], facts["turn"]) == (True, False, len(turns) - 1)
    mean = sum(result["reward"] for result in results) / len(results)
    assert together["key_metrics"] == {"mean/reward": pytest.approx(mean), "mean/success": 1.0}


def test_failures_have_no_reward_in_its_collection():
    script = {"raise": ["hello", "raise"], "win": ["win"], "count": ["1", "2"]}
    with process(FAULTY, "nemo-gym", "--workers", "0", "--token", TOKEN) as (url, _):
        named = url.replace("//", f"//user:{TOKEN}@")
        rows = [row("raise", seed=1), row("win", seed=1), row("win", split="exam")]
        [raised, won, refused], _ = asyncio.run(collected(named, rows, script, observed=False))
    for failed, kind in ((raised, "env_error"), (refused, "bad_request")):
        assert "reward" not in failed and failed["_ng_failure_class"] == "agent_run_error"
        assert kind in failed["_ng_failure_response_body"]
    assert won["reward"] == 1.0 and won["terminated"]
    with process(UNSCORABLE, "nemo-gym", "--workers", "0") as (url, _):
        [unscored], together = asyncio.run(collected(url, [row("count", seed=1)], script, observed=False))
    assert "reward" not in unscored and "unscored" in unscored["_ng_failure_response_body"]
    assert together["key_metrics"] == {}


def test_its_configuration_on_the_page_starts_our_server(tmp_path):
    import httpx
    from nemo_gym.global_config import GlobalConfigDictParser
    from omegaconf import OmegaConf

    [code] = re.findall(r"<!-- run by \S+ -->\n```python\n(import os\n.*?)```", PAGE, re.S)
    [written] = re.findall(r"<!-- read by \S+ -->\n```yaml\n(.*?)```", PAGE, re.S)
    config = OmegaConf.create(written)
    config["policy_model"] = block("responses_api_models", "policy_model", "127.0.0.1", 1)
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        config.desk.resources_servers.desk.port = free.getsockname()[1]
    parser = GlobalConfigDictParser()
    known = parser.filter_for_server_instance_configs(config)
    assert [one.name for one in known] == ["desk", "desk_agent", "desk_environment", "policy_model"]
    parser.validate_and_populate_defaults(known, "127.0.0.1", 20_000, 30_000)  # raises for a name that is not there
    (tmp_path / "app.py").write_text(code, encoding="utf-8")
    told = {"NEMO_GYM_CONFIG_DICT": OmegaConf.to_yaml(config), "NEMO_GYM_CONFIG_PATH": "desk"}
    server = subprocess.Popen([sys.executable, tmp_path / "app.py"], env={**os.environ, **told}, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None and b"nemo-gym: http://127.0.0.1:" in server.stdout.readline()
        url = f"http://127.0.0.1:{config.desk.resources_servers.desk.port}"
        answer = httpx.post(f"{url}/reset", json={"manyturn": {"seed": 1}}).json()
        assert answer["observation"] == transcript("manyturn/Desk-v0", 1)[0].text
    finally:
        server.terminate()
        server.communicate()
