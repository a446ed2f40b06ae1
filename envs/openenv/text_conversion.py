"""Conversion of an agent's text to an OpenEnv action, and of an observation to text.

OpenEnv's actions and observations are JSON objects with fields of the environment's own. Where one field alone holds
text, the agent writes and reads that; else it writes and reads the object.
"""

import json
from collections.abc import Mapping
from typing import Any

from manyturn.envs.openenv.faults import BadAnswer, short

_OF_ACTION = frozenset({"metadata"})  # OpenEnv's own fields
_OF_OBSERVATION = frozenset({"metadata", "done", "reward"})


class Shapes:
    """The two ways of translation.

    Args:
        action, observation: the server's JSON schemas.
        action_field, observation_field: the field that the text is; None finds it.

    Attributes:
        rule: how an action is written, for the agent; empty where it is plain text.
    """

    def __init__(
        self,
        action: Mapping[str, Any],
        observation: Mapping[str, Any],
        action_field: str | None = None,
        observation_field: str | None = None,
    ):
        self._action = _checked(action, action_field, "action") or _needed_text(action)
        self._observation = _checked(observation, observation_field, "observation") or _only_text(observation)
        fields = {name: value for name, value in _fields(action, _OF_ACTION).items()}
        needed = [name for name in action.get("required", ()) if name in fields]
        self.rule = (
            ""
            if self._action
            else (
                "Answer with one JSON object and nothing else. This schema describes its fields: "
                + json.dumps({"properties": fields, "required": needed, **_definitions(action)}, ensure_ascii=False)
            )
        )

    def action(self, text: str) -> dict[str, Any] | None:
        """The action that a text is; None if it is none."""
        try:
            text.encode()  # half of a surrogate pair has no place in a message
            if self._action:
                return {self._action: text}
            plain = json.loads(_unfenced(text))
        except (ValueError, RecursionError):
            return None
        return plain if isinstance(plain, dict) else None

    def text(self, observation: Any) -> str:
        """Text of an observation for the agent. Raises BadAnswer."""
        if not isinstance(observation, Mapping):
            raise BadAnswer(f"the server's observation is no object: {short(observation)}")
        if self._observation is None:
            fields = {name: value for name, value in observation.items() if name not in _OF_OBSERVATION}
            return json.dumps(fields, ensure_ascii=False)
        text = observation.get(self._observation)
        if not isinstance(text, str):
            raise BadAnswer(
                f"the field {self._observation} of the server's observation is {short(text)}, which is no text"
            )
        return text


def _fields(schema: Mapping[str, Any], but: frozenset[str]) -> Mapping[str, Any]:
    return {name: value for name, value in schema.get("properties", {}).items() if name not in but}


def _definitions(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"$defs": schema["$defs"]} if "$defs" in schema else {}


def _checked(schema: Mapping[str, Any], field: str | None, what: str) -> str | None:
    properties = schema.get("properties", {})
    if field is not None and field not in properties:
        raise ValueError(
            f"{what}_field {field!r} is none of the server's {what}: it has {', '.join(properties) or 'none'}"
        )
    return field


def _is_text(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "string"


def _needed_text(schema: Mapping[str, Any]) -> str | None:
    """The one field that an action needs, if it is text."""
    fields = _fields(schema, _OF_ACTION)
    needed = [name for name in schema.get("required", ()) if name in fields] or list(fields)
    return needed[0] if len(needed) == 1 and _is_text(fields[needed[0]]) else None


def _only_text(schema: Mapping[str, Any]) -> str | None:
    """The one field that an observation has, if it is text."""
    fields = _fields(schema, _OF_OBSERVATION)
    [name, *others] = fields or [""]
    return name if not others and _is_text(fields.get(name)) else None


def _unfenced(text: str) -> str:
    """A reply without the fence that models put around JSON."""
    text = text.strip()
    return "\n".join(text.splitlines()[1:-1]) if text.startswith("```") and text.endswith("```") else text
