"""Faults of an OpenEnv server, by their cause. None of them is a reward."""

from collections.abc import Mapping
from typing import Any

from manyturn.envs.contract.registration.env_registry import OutsideLost

# Codes of OpenEnv that say nothing about the environment; the kinds are those of our own server.
_OF_PLACE = frozenset({"CAPACITY_REACHED", "SESSION_ERROR", "FACTORY_ERROR"})
_OF_OUR_PLACE = frozenset({"infra_error", "closing", "full"})
_MORE = "; where the server takes few sessions at once, give as many as it takes with --env.args.sessions"


class ServerRaised(RuntimeError):
    """The server says that the environment raised, or that it does not take what was asked of it."""


class ActionRefused(RuntimeError):
    """The server says that the action is none."""


class BadAnswer(ValueError):
    """Message of the server that is no answer of the protocol."""


def fault_of(data: Any, is_step: bool) -> Exception:
    """The error that a server's message of the type ``error`` means."""
    if not isinstance(data, Mapping) or not isinstance(data.get("code"), str):
        return BadAnswer(f"the server sent an error without a code: {short(data)}")
    code, message = data["code"], f"the server says {data['code'][:40]}: {short(data.get('message'))}"
    if code == "VALIDATION_ERROR" and is_step:
        return ActionRefused(message)
    if code in _OF_PLACE or data.get("kind") in _OF_OUR_PLACE:
        return OutsideLost(message + (_MORE if code == "CAPACITY_REACHED" else ""))
    return ServerRaised(message)


def short(value: object) -> str:
    """The beginning of what a server sent, on one line and without what a terminal would obey."""
    text = " ".join((value if isinstance(value, str) else repr(value))[:2000].split())[:200]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
