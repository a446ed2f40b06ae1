"""Arguments that fit a tool's schema and mean nothing: one text wherever a text may stand."""

from collections.abc import Mapping
from typing import Any

_DEEPEST = 4


def tool_name(tool: Mapping[str, Any]) -> str:
    """Name of a tool in OpenAI's form, with or without the layer ``function``."""
    return str(tool.get("function", tool).get("name", ""))


def filled(tool: Mapping[str, Any], text: str) -> dict[str, Any]:
    """All required arguments of a tool.

    >>> shape = {"properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}
    >>> filled({"function": {"name": "get", "parameters": shape}}, "done")
    {'id': 'done'}
    """
    shape = tool.get("function", tool).get("parameters") or {}
    return _object(shape, shape, text, _DEEPEST)


def _object(shape: Mapping[str, Any], root: Mapping[str, Any], text: str, depth: int) -> dict[str, Any]:
    properties = shape.get("properties") or {}
    names = shape.get("required", ())
    return {name: _value(properties.get(name) or {}, root, text, depth) for name in names}


def _value(shape: Mapping[str, Any], root: Mapping[str, Any], text: str, depth: int) -> Any:
    """A value of a JSON schema; a schema that is nested too deeply, or says nothing, gets the text."""
    if depth <= 0:
        return text
    if reference := shape.get("$ref"):
        shape = (root.get("$defs") or {}).get(str(reference).rpartition("/")[2]) or {}
    for choice in ("anyOf", "oneOf", "allOf"):
        if shape.get(choice):
            return _value(shape[choice][0], root, text, depth - 1)
    if "const" in shape:
        return shape["const"]
    if shape.get("enum"):
        return shape["enum"][0]
    kind = shape.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "integer" | "number":
            return shape.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [_value(shape.get("items") or {}, root, text, depth - 1)]
        case "object":
            return _object(shape, root, text, depth - 1)
        case "null":
            return None
    return text
