"""An endpoint on loopback, and a small folder of profiles in Sotopia's layout."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyturn.envs.contract.random_keys import digest

DIMENSIONS = {
    "believability": 8,
    "relationship": 2,
    "knowledge": 3,
    "secret": 0,
    "social_rules": 0,
    "financial_and_material_benefits": -1,
    "goal": 7,
}
TALK = ("speak: Hello there.", "non-verbal: smiles", "action: takes a seat", "none", "speak: I see. ###STOP###")


class Endpoint:
    """A model behind an OpenAI-compatible endpoint, as partner and as judge.

    ``partner`` and ``judge`` make its replies, of which bytes are sent as they stand; ``requests`` has all that came.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.partner: Callable[[dict[str, Any]], str | bytes] = lambda request: "speak: Go on."
        self.judge: Callable[[dict[str, Any]], str | bytes] = lambda request: self.judgement()
        self.url = ""

    def reply(self, request: dict[str, Any]) -> bytes:
        self.requests.append(request)
        judges = "You judge" in request["messages"][0]["content"]
        text = (self.judge if judges else self.partner)(request)
        if isinstance(text, bytes):
            return text
        return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()

    @staticmethod
    def judgement(**scores: Any) -> str:
        """A judge's answer."""
        return json.dumps({name: {"reason": "So.", "score": score} for name, score in {**DIMENSIONS, **scores}.items()})

    @staticmethod
    def talker(request: dict[str, Any]) -> str:
        """A partner who does this and that, always the same after the same."""
        return TALK[int(digest(request["messages"]), 16) % len(TALK)]

    def user(self, **options: Any) -> dict[str, Any]:
        return {"kind": "model", "model": "m", "base_url": self.url, "wait": 0, **options}


@pytest.fixture
def endpoint(serve: Callable[[Callable[[dict[str, Any]], bytes]], str]) -> Endpoint:
    made = Endpoint()
    made.url = serve(made.reply)
    return made


def person(number: int) -> dict[str, Any]:
    return {
        "agent_id": f"P{number}",
        "first_name": f"Ann{number}",
        "last_name": "Stone",
        "age": 30 + number,
        "occupation": "Baker",
        "gender": "Woman",
        "gender_pronoun": "She/her",
        "public_info": f"Keeps {number} bees.",
        "personality_and_values": f"Brave as {number} lions.",
        "secret": f"Owes {number} coins.",
        "big_five": "left out",
    }


def scenario(number: int, relationship: Any = 0) -> dict[str, Any]:
    return {
        "env_id": f"S{number}",
        "codename": f"scene {number}",
        "scenario": f"Two people meet at stall {number}. <p viewer='agent_1'>It rains.</p>",
        "agent_goals": [f"Sell the jar. <extra_info>It cost {number}.</extra_info>", "Buy the jar cheaply."],
        "relationship": relationship,
    }


def write(folder: Path, scenarios: int = 30, relationship: Any = 0) -> Path:
    """A folder as the package's exports make it: each scenario with two pairs of four people."""
    pairs = [{"combo_id": f"C{n}{a}", "env_id": f"S{n}", "agent_ids": [f"P{a}", f"P{a + 2}"]}
             for n in range(scenarios) for a in range(2)]  # fmt: skip
    records = {
        "agent_profiles": [person(number) for number in range(4)],
        "environment_profiles": [scenario(number, relationship) for number in range(scenarios)],
        "env_agent_combo_storages": pairs,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in records.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in rows))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "profiles")
