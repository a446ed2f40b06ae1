"""ATIF 1.8, Harbor's Agent Trajectory Interchange Format: a JSON document for each episode.

Source: the models of ``harbor.models.trajectories`` in the package harbor 0.25. What the agent was told first is a step
of ``system``, the first observation one of ``user``, each turn one of ``agent``, whose ``observation`` is what the
environment answered; ids and log-probabilities are in its ``metrics``. What else is known is under ``manyturn`` in
``extra``, the format's own place for it, so that nothing is lost. A number there that is not finite is
``{"not_finite": "nan"}``.

A document of somebody else becomes a conversation: calls of tools are blocks that the reply format tool_call reads,
what tools answer is read, and ``reasoning_content`` is left out. Steps that were copied from another trajectory, and
those of the agent without a model, are read too: nobody said them here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.agents.records.tables import Row
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.chat import call_block, exchanges_of, text_of
from manyturn.agents.trajectories.conversation import ASSISTANT, SYSTEM, USER, message, of_exchanges
from manyturn.agents.trajectories.ledger_turns import (
    Said,
    ledger_from_plain,
    ledger_of,
    ledger_to_plain,
    prompt_from_plain,
    prompt_to_plain,
    said_of,
)
from manyturn.agents.trajectories.new_folder import new_folder
from manyturn.agents.trajectories.trajectory import VERSION, Trajectory, TrajectoryError, canonical, pack, unpack
from manyturn.envs.contract.roles import ONE_ROLE

SCHEMA = "ATIF-v1.8"
_OURS = "manyturn"
_AGENT = "agent"


def write(out: Path, trajectories: Iterable[Trajectory]) -> int:
    """Write a folder with a document for each trajectory; returns how many."""
    count = 0
    with new_folder(out) as folder:
        for count, one in enumerate(trajectories, 1):
            (folder / f"{count:06d}.json").write_text(canonical(document(one)) + "\n", encoding="utf-8")
    return count


def document(one: Trajectory) -> dict[str, Any]:
    """The trajectory as an ATIF document."""
    row, said = one.episode, _said(one)
    ours: dict[str, Any] = {"version": VERSION, "about": dict(one.about), "episode": pack(row)}
    if one.ledger is not None:
        ours |= {"has_tokens": True, "unanswered": prompt_to_plain(one.ledger.unanswered)}
        if not _is_rebuilt(one.ledger, said, len(one.turns)):
            ours["ledger"] = ledger_to_plain(one.ledger)
    found = {
        "schema_version": SCHEMA,
        "session_id": f"{one.about.get('policy') or 'unknown'}, {row['stage']}",
        "trajectory_id": f"{row['stage']}/{row['task']}/{row['member']}",
        "agent": {"name": _OURS, "version": str(VERSION), "model_name": one.about.get("policy")},
        "steps": _steps(one, said),
        "final_metrics": {
            "total_prompt_tokens": row["prompt_tokens"],
            "total_completion_tokens": row["reply_tokens"],
            "extra": {"reward": row["return"], "success": row["success"], "ending": row["ending"]},
        },
        "extra": {_OURS: ours},
    }
    found["final_metrics"]["total_steps"] = len(found["steps"])
    return _without_none(found)


def _steps(one: Trajectory, said: list[Said]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if one.about.get("system"):
        steps.append({"source": SYSTEM, "message": one.about["system"]})
    steps.append({"source": USER, "message": one.turns[0]["observation"] if one.turns else one.episode["last"]})
    answers = [*(row["observation"] for row in one.turns[1:]), one.episode["last"]]
    for number, (row, answer) in enumerate(zip(one.turns, answers, strict=bool(one.turns))):
        tokens = said[number] if number < len(said) else None
        step = {
            "source": _AGENT,
            "message": row["reply"],
            "metrics": _metrics(row, tokens),
            "observation": {"results": [{"content": answer}]},
        }
        read_back = _row_of(step, number, row["observation"], one.episode, tokens is not None)
        rest = {name: value for name, value in row.items() if name not in read_back or _differ(read_back[name], value)}
        ours: dict[str, Any] = {"turn": pack(rest)}
        if tokens is not None:
            kept = {"entropies": tokens.entropies, "version": tokens.version, "role": tokens.role}
            ours["tokens"] = {**kept, "allowed": tokens.allowed}
        steps.append({**step, "extra": {_OURS: ours}})
    return [{"step_id": number, **step} for number, step in enumerate(steps, 1)]


def _metrics(row: Row, tokens: Said | None) -> dict[str, Any] | None:
    if tokens is not None:
        return {
            "prompt_tokens": len(tokens.prompt),
            "completion_tokens": len(tokens.reply),
            "prompt_token_ids": tokens.prompt,
            "completion_token_ids": tokens.reply,
            "logprobs": tokens.logprobs,
        }
    if row["reply_tokens"] is None and row["logprobs"] is None:
        return None
    figures = {"prompt_tokens": row["prompt_tokens"], "completion_tokens": row["reply_tokens"]}
    return {**figures, "logprobs": row["logprobs"]}


def of_document(plain: Mapping[str, Any], name: str) -> Trajectory:
    """The trajectory of a document, ours or somebody else's.

    Args:
        name: of the file, for messages, and for the task of a document without an id.

    Raises:
        TrajectoryError: it is no ATIF document.
    """
    if not str(plain.get("schema_version", "")).startswith("ATIF-v1."):
        raise TrajectoryError(f"{name} is no ATIF document: it has schema_version {plain.get('schema_version')!r}")
    try:
        ours = (plain.get("extra") or {}).get(_OURS)
        return _of_ours(plain, ours) if ours and ours.get("version") == VERSION else _of_others(plain, name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise TrajectoryError(
            f"{name} is no complete ATIF document ({type(error).__name__}: {error}): see harbor's own models"
        ) from None


def _of_ours(plain: Mapping[str, Any], ours: Mapping[str, Any]) -> Trajectory:
    episode, said, turns = unpack(ours["episode"]), list[Said](), list[Row]()
    read = next(step["message"] for step in plain["steps"] if step["source"] == USER)
    for number, step in enumerate(step for step in plain["steps"] if step["source"] == _AGENT):
        extra, metrics = step["extra"][_OURS], step.get("metrics") or {}
        tokens = extra.get("tokens")
        turns.append(_row_of(step, number, read, episode, tokens is not None) | unpack(extra["turn"]))
        if tokens is not None:
            ids = metrics["prompt_token_ids"], metrics["completion_token_ids"], metrics["logprobs"]
            said.append(Said(*ids, tokens["entropies"], tokens["version"], tokens["role"], tokens["allowed"]))
        read = step["observation"]["results"][0]["content"]
    ledger = None
    if "ledger" in ours:
        ledger = ledger_from_plain(ours["ledger"])
    elif ours.get("has_tokens"):
        ledger = ledger_of(said, prompt_from_plain(ours.get("unanswered")))
    return Trajectory(episode, turns, ledger, ours["about"])


def _row_of(step: Mapping[str, Any], number: int, read: str, episode: Row, has_tokens: bool) -> Row:
    """What a step of ours says of its turn's row without ``extra``."""
    metrics = step.get("metrics") or {}
    logprobs = metrics.get("logprobs")
    if has_tokens:  # tables have them in single precision
        logprobs = np.array(logprobs, np.float32).tolist()
    return {
        **{name: episode[name] for name in ("task", "stage", "member")},
        "turn": number,
        "role": ONE_ROLE,
        "observation": read,
        "reply": step["message"],
        "prompt_tokens": metrics.get("prompt_tokens"),
        "reply_tokens": metrics.get("completion_tokens"),
        "logprobs": logprobs,
    }


def _said(one: Trajectory) -> list[Said]:
    """What was said at the turns; a reply that an episode died of is in none."""
    return [] if one.ledger is None else said_of(one.ledger)[: len(one.turns)]


def _is_rebuilt(ledger: Ledger, said: list[Said], turns: int) -> bool:
    """Whether recording these turns again makes the same ledger."""
    if not len(said) == len(ledger.spans) == turns:
        return False
    return canonical(ledger_to_plain(ledger_of(said, ledger.unanswered))) == canonical(ledger_to_plain(ledger))


def _of_others(plain: Mapping[str, Any], name: str) -> Trajectory:
    messages, said, spoken = [], list[Said](), 0
    for step in plain["steps"]:
        of_model = step["source"] == _AGENT and step.get("llm_call_count") != 0 and not step.get("is_copied_context")
        calls = [call_block(one["function_name"], one["arguments"]) for one in step.get("tool_calls") or ()]
        text = "\n".join(filter(None, [text_of({"content": step["message"]}), *calls]))
        messages.append(message(SYSTEM if step["source"] == SYSTEM else ASSISTANT if of_model else USER, text))
        if of_model:
            spoken += 1
            said += _told_tokens(step.get("metrics") or {})
        for result in (step.get("observation") or {}).get("results", ()):
            messages.append(message(USER, text_of({"content": result.get("content") or ""})))
    system, exchanges, last = exchanges_of(messages)
    task = plain.get("trajectory_id") or plain.get("session_id")
    found = of_exchanges(exchanges, name, system, task=task, last=last)
    about = {"system": system, "policy": plain["agent"].get("model_name") or plain["agent"]["name"]}
    ledger = ledger_of(said, None) if len(said) == spoken == len(exchanges) else None
    return Trajectory(found.episode, found.turns, ledger, about)


def _told_tokens(metrics: Mapping[str, Any]) -> list[Said]:
    """The tokens of a step, if all are there."""
    prompt, reply, logprobs = (metrics.get(f) for f in ("prompt_token_ids", "completion_token_ids", "logprobs"))
    if prompt is None or reply is None or logprobs is None or len(reply) != len(logprobs):
        return []
    return [Said(prompt, reply, logprobs, [None] * len(reply), 0, ONE_ROLE, [])]


def _differ(one: Any, other: Any) -> bool:
    return canonical(pack(one)) != canonical(pack(other))


def _without_none(found: dict[str, Any]) -> dict[str, Any]:
    """Fields of the format that are unset are left out; what is below ``extra`` stays as it is."""
    return {key: value if key == "extra" else _shallow(value) for key, value in found.items() if value is not None}


def _shallow(value: Any) -> Any:
    if isinstance(value, dict):
        return _without_none(value)
    return [_shallow(part) for part in value] if isinstance(value, list) else value
