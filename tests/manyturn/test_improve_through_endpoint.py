"""Cases that do not carry over through an endpoint, or that an interruption makes it pay for twice."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import Server, completion, reading

from benchmarks.kit.fault_world import BUTTONS, UNSEEN

WORLD = Path(__file__).parents[2] / "benchmarks/kit/fault_world.py"
SIZES = ("--pool.limit", "40", "--validation.limit", "50", "--rounds", "2", "--method.shown", "1")
WORDS = (
    "improve",
    "openai:toy",
    "--env",
    f"{WORLD}:Machines",
    "--method",
    "cases",
    "--method.failures",
    "false",
    *SIZES,
)
CONCURRENT, TURNS = 4, 2


def repairing(body: dict[str, Any]) -> bytes:
    """Do what the case in the system message did last, if it is of this fault; else press some button."""
    system, seen = body["messages"][0]["content"], body["messages"][1]["content"]
    fault = re.findall(r"[Ff]ault (\w+)", seen)[0]
    case = system.rpartition(f"fault {fault}.")[2] if f"fault {fault}." in system else ""
    pressed = re.findall(r"press (\w+)", case)
    button = pressed[-1] if pressed else BUTTONS[(body["seed"] + len(body["messages"])) % len(BUTTONS)]
    return completion(f"<action>press {button}</action>", 40, 6)


def panels(out: str) -> list[Any]:
    return [one["validation"] for one in json.loads((Path(out) / "improvement.json").read_text())["rounds"]]


@pytest.mark.parametrize("after", [200, *(pytest.param(n, marks=pytest.mark.deep) for n in (60, 300, 430))])
def test_cases_carry_to_other_machines_and_a_killed_round_asks_again_only_for_open_episodes(
    command, endpoint_server: Server, tmp_path, monkeypatch, after
):
    monkeypatch.chdir(tmp_path)
    endpoint_server.script = [reading(repairing)]
    words = (*WORDS, "--endpoint.concurrency", str(CONCURRENT), "--out")
    assert command(*words, "whole").code == 0
    whole = Counter(json.dumps(one["body"], sort_keys=True) for one in endpoint_server.requests)
    before, *_, last = panels("whole")
    assert all(before[name]["ci_high"] < last[name]["ci_low"] for name in ("sampled", "greedy"))
    summary = json.loads(Path("whole/rounds/2/greedy/summary.json").read_text())
    tags = {tag: of["success"]["mean"] for tag, of in summary["by_tag"].items()}
    assert tags["fault of no training task"] < 0.7 < tags["fault of training tasks"]
    page = Path("whole/experience.md").read_text()
    assert "These actions led to success" in page and not any(f"fault {name}" in page for name in UNSEEN)

    endpoint_server.requests.clear()
    killed = subprocess.Popen([sys.executable, "-P", "-m", "manyturn", *words, "part"], stderr=subprocess.DEVNULL)

    def deadly(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        if len(endpoint_server.requests) >= after:
            killed.kill()
            return 0, b"", {}
        return 200, repairing(handler.asked), {}

    endpoint_server.script = [deadly]
    assert killed.wait() == -9
    endpoint_server.script = [reading(repairing)]
    assert command(*words, "part").code == 0
    part = Counter(json.dumps(one["body"], sort_keys=True) for one in endpoint_server.requests)
    assert not whole - part and (part - whole).total() <= CONCURRENT * TURNS
    assert panels("part") == panels("whole")
    assert Path("part/experience.jsonl").read_bytes() == Path("whole/experience.jsonl").read_bytes()
