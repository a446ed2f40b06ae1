"""Data and interface classes of the installed package ``bfcl-eval`` (gorilla, Apache-2.0), and nothing else of it."""

import importlib
import importlib.util
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup

KINDS = ("base", "miss_func", "miss_param", "long_context")
COUNT = 200  # tasks of each kind
INSTALL = "pip install --no-deps bfcl-eval==2026.3.23 && pip install mpmath"  # its other dependencies are not needed
MODULES = {  # interface -> module, which is also the name of its documentation file
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_SOURCES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}  # the documentation's own names


class BfclMissing(NeedsSetup):
    """The package is not installed, or not the one that this was written for."""


def data_folder() -> Path:
    """Raises BfclMissing."""
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        raise BfclMissing(f'BFCL\'s tasks are in the package bfcl-eval: run "{INSTALL}"')
    return Path(spec.submodule_search_locations[0]) / "data"


def _lines(name: str) -> list[Any]:
    file = data_folder() / name
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise BfclMissing(f'{file} cannot be read ({error}): run "{INSTALL}"') from None


@lru_cache(maxsize=len(KINDS))
def entries(kind: str) -> tuple[Mapping[str, Any], ...]:
    """The tasks of a kind in order, each with its ``ground_truth``. Raises BfclMissing."""
    name = f"BFCL_v4_multi_turn_{kind}.json"
    questions, answers = _lines(name), _lines(f"possible_answer/{name}")
    truths = {one["id"]: one["ground_truth"] for one in answers}
    if len(questions) != COUNT or {one["id"] for one in questions} != truths.keys():
        raise BfclMissing(f'bfcl-eval has {len(questions)} {kind} tasks instead of {COUNT}: run "{INSTALL}"')
    return tuple(one | {"ground_truth": truths[one["id"]]} for one in questions)


@lru_cache(maxsize=len(MODULES))
def interface(name: str) -> type:
    """The class of an interface. Raises BfclMissing."""
    try:
        return getattr(importlib.import_module(f"{_SOURCES}.{MODULES[name]}"), name)
    except (ImportError, AttributeError, KeyError) as error:
        raise BfclMissing(f'the interface {name} of bfcl-eval cannot be had ({error}): run "{INSTALL}"') from None


@lru_cache(maxsize=len(MODULES))
def schemas(name: str) -> tuple[Mapping[str, Any], ...]:
    """The documentation of an interface's functions, in OpenAI's form. Raises BfclMissing."""
    tools = []
    for one in _lines(f"multi_turn_func_doc/{MODULES[name]}.json"):
        described = {key: one[key] for key in ("name", "description")}
        tools.append({"type": "function", "function": described | {"parameters": _json_schema(one["parameters"])}})
    return tuple(tools)


def _json_schema(described: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with JSON's names of types."""
    schema = dict(described)
    if "type" in schema:
        schema["type"] = _TYPES.get(schema["type"], schema["type"])
    if "properties" in schema:
        schema["properties"] = {name: _json_schema(one) for name, one in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _json_schema(schema["items"])
    return schema
