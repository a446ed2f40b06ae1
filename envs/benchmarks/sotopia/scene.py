"""A scene as each of its two characters knows it, and as somebody knows it who sees all."""

import re
from collections.abc import Mapping
from typing import Any

RELATIONSHIPS = ("stranger", "know_by_name", "acquaintance", "friend", "romantic_relationship", "family_member")
_ACQUAINTANCE, _FRIEND, _ITSELF = 2, 3, len(RELATIONSHIPS)
_TIES = (
    "They have never met.",
    "They know each other by name.",
    "They are acquaintances.",
    "They are friends.",
    "They are a couple.",
    "They are family.",
)

ALL = "environment"
_FOR_SOME = re.compile(r"<(\w+) viewer=['\"](\w+)['\"]>(.*?)</\1>", re.DOTALL)
_TAG = re.compile(r"</?(?:root|p|extra_info|clarification_hint|strategy_hint)\b[^>]*>")

Params = Mapping[str, Any]


def name(params: Params, role: int) -> str:
    """The character's name."""
    who = params["cast"][role]
    return f"{who['first_name']} {who['last_name']}"


def known_to(params: Params, role: int) -> str:
    """A character's knowledge at the beginning: itself, its goal, and of the other what their relationship allows."""
    viewer, other, tie = f"agent_{role}", 1 - role, params["relationship"]
    return "\n".join([
        f"The situation: {shown(params['scenario'], viewer)}",
        f"You are {name(params, role)}. {_portrait(params, role, _ITSELF)}".strip(),
        f"The other is {name(params, other)}. {_TIES[tie]} {_portrait(params, other, tie)}".strip(),
        f"Your goal, which the other does not know: {shown(params['goals'][role], viewer)}",
    ])  # fmt: skip


def known_to_all(params: Params) -> str:
    """Everything, as a judge knows it."""
    lines = [f"The situation: {shown(params['scenario'], ALL)}", _TIES[params["relationship"]]]
    for role in range(2):
        lines.append(f"{name(params, role)}: {_portrait(params, role, _ITSELF)}".strip())
        lines.append(f"{name(params, role)}'s goal: {shown(params['goals'][role], ALL)}")
    return "\n".join(lines)


def shown(text: str, viewer: str) -> str:
    """A text of Sotopia as one viewer reads it: what is marked for another is left out, and so are the marks.

    >>> shown("Sell it. <extra_info>It cost $5.</extra_info><p viewer='agent_1'>It is broken.</p>", "agent_0")
    'Sell it. It cost $5.'
    """
    mine = _FOR_SOME.sub(lambda match: match[3] if viewer in (match[2], ALL) else "", text)
    return _TAG.sub("", mine).strip()


def _portrait(params: Params, role: int, closeness: int) -> str:
    """A character as someone of a closeness knows it; only the character itself knows the secret."""
    who = params["cast"][role]
    parts = []
    if closeness >= _ACQUAINTANCE:
        age = f"{who['age']} years old" if who["age"] else ""
        facts = (age, who["gender"].lower(), who["occupation"].lower(), who["gender_pronoun"])
        parts += [", ".join(filter(None, facts)), who["public_info"]]
    if closeness >= _FRIEND:
        parts += [who["personality_and_values"]]
    if closeness >= _ITSELF:
        parts += [f"Secret: {who['secret']}" if who["secret"] else ""]
    return " ".join(f"{part.strip().rstrip('.')}." for part in parts if part.strip())
