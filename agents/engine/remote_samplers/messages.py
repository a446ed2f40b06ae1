"""Messages between a driver and a sampler.

A connection is as one to a host of environments (``envs/hosting/remote/host_protocol.py``), at ``/sampler``. The
driver's first message names the engine and describes the model; the weights come after it. Then:

    {"id": 1, "op": "weights", "load": 1, "version": 0, "size": 9000, "digest": "..."}     {"id": 1, "value": null}
    {"id": 2, "op": "part", "load": 1, "at": 0, "data": BASE64}                            {"id": 2, "value": null}
    {"id": 3, "op": "commit", "load": 1}                                                   {"id": 3, "value": "..."}
    {"id": 4, "op": "expect", "count": 2}                                                  (no answer)
    {"id": 5, "op": "draw", "key": [...], "turn": 0, "prompt": [...], ...}                 {"id": 5, "value": {...}}
    {"id": 6, "op": "close", "key": [...]}                                                 (no answer)

``expect`` says how many of the draws that follow make one round, for engines that compute in rounds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.agents.engine.engine import EngineError, EngineRefused, Reply, Sampling
from manyturn.agents.text.choice_decoding import Choices, Unit
from manyturn.agents.tokens.episode_key import EpisodeKey

PATH = "/sampler"
LANGUAGE = 2  # a sampler and a driver that speak another one refuse each other

_UNITS: Mapping[str, Unit] = {"token": "token", "command": "command"}
_ERRORS = {"refused": EngineRefused, "engine": EngineError}


class Draw(NamedTuple):
    """A request for one reply; ``choices`` limit it if there are any."""

    key: EpisodeKey
    turn: int
    prompt: list[int]
    sampling: Sampling
    choices: Choices | None


def error_to_wire(error: Exception) -> dict[str, Any]:
    """An error in place of an answer."""
    if isinstance(error, EngineError):
        return {"kind": "refused" if isinstance(error, EngineRefused) else "engine", "message": str(error)}
    return {"kind": "engine", "message": f"the engine raised {type(error).__name__}: {error}"}


def error_from_wire(fields: Mapping[str, Any]) -> Exception:
    """Inverse of ``error_to_wire``. Raises ValueError, KeyError or TypeError for anything else."""
    text = fields["message"]
    if not isinstance(text, str):
        raise TypeError("an error's message is text")
    return _ERRORS[fields["kind"]](text)


def draw_to_wire(
    key: EpisodeKey, turn: int, prompt: Sequence[int], sampling: Sampling, choices: Choices | None
) -> dict[str, Any]:
    """The fields of a draw."""
    return {
        "key": list(key),
        "turn": turn,
        "prompt": list(prompt),
        "sampling": sampling.model_dump(),
        "choices": None if choices is None else [list(ids) for ids in choices.replies],
        "unit": "token" if choices is None else choices.unit,
    }


def draw_from_wire(fields: Mapping[str, Any]) -> Draw:
    """Inverse of ``draw_to_wire``. Raises ValueError, KeyError or TypeError for anything else."""
    choices, prompt = fields["choices"], fields["prompt"]
    if not isinstance(fields["turn"], int) or not all(type(token) is int for token in prompt):
        raise TypeError("a turn is a number, and a prompt a list of tokens")
    limited = None if choices is None else Choices(choices, _UNITS[fields["unit"]])
    sampling = Sampling.model_validate(fields["sampling"])
    return Draw(key_from_wire(fields["key"]), fields["turn"], prompt, sampling, limited)


def key_from_wire(values: Any) -> EpisodeKey:
    """An episode's key. Raises ValueError or TypeError for anything else."""
    seed, stage, task, member = values
    if not (isinstance(seed, int) and isinstance(stage, str) and isinstance(task, str) and isinstance(member, int)):
        raise TypeError("a key is a seed, a stage, a task and a member")
    return EpisodeKey(seed, stage, task, member)


def reply_to_wire(reply: Reply) -> dict[str, Any]:
    """The fields of a reply."""
    return reply._asdict()


def reply_from_wire(fields: Mapping[str, Any]) -> Reply:
    """Inverse of ``reply_to_wire``; whoever asked looks at the values. Raises ValueError or TypeError for no reply."""
    if not isinstance(fields, dict) or fields.keys() != set(Reply._fields):
        raise ValueError("it is no reply")
    return Reply(**fields)
