"""ATIF 1.8, Harbor's Agent Trajectory Interchange Format: a JSON document for each episode.

Source: the models of ``harbor.models.trajectories`` in the package harbor 0.25. The system text is a step
of ``system``, the first observation one of ``user``, each turn one of ``agent``, whose ``observation`` is what the
environment answered; ids and log-probabilities are in its ``metrics``. What else is known is under ``manyturn`` in
``extra``, the format's own place for it, so that nothing is lost. A number there that is not finite is
``{"not_finite": "nan"}``.

A document of another program becomes a conversation: calls of tools are blocks that the reply format tool_call reads,
what tools answer is read, and ``reasoning_content`` is the turn's reasoning. Steps that were copied from another
trajectory, and those of the agent without a model, are read too: no policy wrote them here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.agents.records.tables import Row
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.atomic_folder import new_folder
from manyturn.agents.trajectories.conversation import ASSISTANT, SYSTEM, USER, message, of_exchanges
from manyturn.agents.trajectories.formats.chat import call_block, exchanges_of, text_of
from manyturn.agents.trajectories.ledger_turns import (
    Said,
    ledger_from_plain,
    ledger_of,
    ledger_to_plain,
    prompt_from_plain,
    prompt_to_plain,
    said_of,
)
from manyturn.agents.trajectories.trajectory import VERSION, Trajectory, TrajectoryError, canonical, pack, unpack
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.env.roles import ONE_ROLE

SCHEMA = "ATIF-v1.8"
_OURS = "manyturn"
_AGENT = "agent"


def write(out: Path, trajectories: Iterable[Trajectory]) -> int:
    """Write a folder with a document for each trajectory; returns how many."""
    count = 0
    with new_folder(out) as folder:
        for count, trajectory in enumerate(trajectories, 1):
            (folder / f"{count:06d}.json").write_text(masked(canonical(document(trajectory))) + "\n", encoding="utf-8")
    return count


def document(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as an ATIF document."""
    row, replies = trajectory.episode, _replies(trajectory)
    ours: dict[str, Any] = {"version": VERSION, "about": dict(trajectory.about), "episode": pack(row)}
    if trajectory.ledger is not None:
        ours |= {"has_tokens": True, "unanswered": prompt_to_plain(trajectory.ledger.unanswered)}
        if not _is_rebuilt(trajectory.ledger, replies, len(trajectory.turns)):
            ours["ledger"] = ledger_to_plain(trajectory.ledger)
    plain = {
        "schema_version": SCHEMA,
        "session_id": f"{trajectory.about.get('policy') or 'unknown'}, {row['stage']}",
        "trajectory_id": f"{row['stage']}/{row['task']}/{row['member']}",
        "agent": {"name": _OURS, "version": str(VERSION), "model_name": trajectory.about.get("policy")},
        "steps": _steps(trajectory, replies),
        "final_metrics": {
            "total_prompt_tokens": row["prompt_tokens"],
            "total_completion_tokens": row["reply_tokens"],
            "extra": {"reward": row["return"], "success": row["success"], "ending": row["ending"]},
        },
        "extra": {_OURS: ours},
    }
    plain["final_metrics"]["total_steps"] = len(plain["steps"])
    return _without_none(plain)


def _steps(trajectory: Trajectory, replies: list[Said]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if trajectory.about.get("system"):
        steps.append({"source": SYSTEM, "message": trajectory.about["system"]})
    steps.append(
        {
            "source": USER,
            "message": trajectory.turns[0]["observation"] if trajectory.turns else trajectory.episode["last"],
        }
    )
    answers = [*(row["observation"] for row in trajectory.turns[1:]), trajectory.episode["last"]]
    for number, (row, answer) in enumerate(zip(trajectory.turns, answers, strict=bool(trajectory.turns))):
        tokens = replies[number] if number < len(replies) else None
        step = {
            "source": _AGENT,
            "message": row["reply"],
            "reasoning_content": row["reasoning"] or None,
            "metrics": _metrics(row, tokens),
            "observation": {"results": [{"content": answer}]},
        }
        read_back = _row_of(step, number, row["observation"], trajectory.episode, has_tokens=tokens is not None)
        rest = {name: value for name, value in row.items() if name not in read_back or _differ(read_back[name], value)}
        ours: dict[str, Any] = {"turn": pack(rest)}
        if tokens is not None:
            token_fields = {"entropies": tokens.entropies, "version": tokens.version, "role": tokens.role}
            ours["tokens"] = {**token_fields, "allowed": tokens.allowed}
            if tokens.commands:
                ours["tokens"]["commands"] = tokens.commands
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
    """The trajectory of a document, ours or another program's.

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
    episode, replies, turns = unpack(ours["episode"]), list[Said](), list[Row]()
    read = next(step["message"] for step in plain["steps"] if step["source"] == USER)
    for number, step in enumerate(step for step in plain["steps"] if step["source"] == _AGENT):
        extra, metrics = step["extra"][_OURS], step.get("metrics") or {}
        tokens = extra.get("tokens")
        turns.append(_row_of(step, number, read, episode, has_tokens=tokens is not None) | unpack(extra["turn"]))
        if tokens is not None:
            ids = metrics["prompt_token_ids"], metrics["completion_token_ids"], metrics["logprobs"]
            limits = tokens["allowed"], tokens.get("commands", [])
            replies.append(Said(*ids, tokens["entropies"], tokens["version"], tokens["role"], *limits))
        read = step["observation"]["results"][0]["content"]
    ledger = None
    if "ledger" in ours:
        ledger = ledger_from_plain(ours["ledger"])
    elif ours.get("has_tokens"):
        ledger = ledger_of(replies, prompt_from_plain(ours.get("unanswered")))
    return Trajectory(episode, turns, ledger, ours["about"])


def _row_of(step: Mapping[str, Any], number: int, read: str, episode: Row, *, has_tokens: bool) -> Row:
    """The part of a turn's row that a step of ours holds outside ``extra``."""
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
        "reasoning": step.get("reasoning_content") or "",
        "prompt_tokens": metrics.get("prompt_tokens"),
        "reply_tokens": metrics.get("completion_tokens"),
        "logprobs": logprobs,
    }


def _replies(trajectory: Trajectory) -> list[Said]:
    """Replies of the turns; a reply that an episode died of belongs to none."""
    return [] if trajectory.ledger is None else said_of(trajectory.ledger)[: len(trajectory.turns)]


def _is_rebuilt(ledger: Ledger, replies: list[Said], turns: int) -> bool:
    """True if recording these turns again makes the same ledger."""
    if not len(replies) == len(ledger.spans) == turns:
        return False
    return canonical(ledger_to_plain(ledger_of(replies, ledger.unanswered))) == canonical(ledger_to_plain(ledger))


def _of_others(plain: Mapping[str, Any], name: str) -> Trajectory:
    messages, replies, spoken = [], list[Said](), 0
    for step in plain["steps"]:
        of_model = step["source"] == _AGENT and step.get("llm_call_count") != 0 and not step.get("is_copied_context")
        calls = [call_block(call["function_name"], call["arguments"]) for call in step.get("tool_calls") or ()]
        text = "\n".join(filter(None, [text_of({"content": step["message"]}), *calls]))
        role = SYSTEM if step["source"] == SYSTEM else ASSISTANT if of_model else USER
        messages.append(message(role, text) | {"reasoning_content": step.get("reasoning_content")})
        if of_model:
            spoken += 1
            replies += _told_tokens(step.get("metrics") or {})
        for result in (step.get("observation") or {}).get("results", ()):
            messages.append(message(USER, text_of({"content": result.get("content") or ""})))
    system, exchanges, last = exchanges_of(messages)
    task = plain.get("trajectory_id") or plain.get("session_id")
    trajectory = of_exchanges(exchanges, name, system, task=task, last=last)
    about = {"system": system, "policy": plain["agent"].get("model_name") or plain["agent"]["name"]}
    ledger = ledger_of(replies, None) if len(replies) == spoken == len(exchanges) else None
    return Trajectory(trajectory.episode, trajectory.turns, ledger, about)


def _told_tokens(metrics: Mapping[str, Any]) -> list[Said]:
    """The tokens of a step, if all are there."""
    prompt, reply, logprobs = (metrics.get(f) for f in ("prompt_token_ids", "completion_token_ids", "logprobs"))
    if prompt is None or reply is None or logprobs is None or len(reply) != len(logprobs):
        return []
    return [Said(prompt, reply, logprobs, [None] * len(reply), 0, ONE_ROLE, [], [])]


def _differ(value: Any, other: Any) -> bool:
    return canonical(pack(value)) != canonical(pack(other))


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of the format that are unset are left out; what is below ``extra`` stays as it is."""
    return {key: value if key == "extra" else _shallow(value) for key, value in fields.items() if value is not None}


def _shallow(value: Any) -> Any:
    if isinstance(value, dict):
        return _without_none(value)
    return [_shallow(part) for part in value] if isinstance(value, list) else value
