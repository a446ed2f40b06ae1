"""Logs of Inspect, in its JSON form: one sample for each episode, which ``inspect view`` shows.

Source: ``inspect_ai.log`` in the package inspect-ai 0.3.285. Success and return are scores; one that is not known is
left out. The full trajectory is in the sample's ``metadata`` under ``manyturn``, so that nothing is lost. A log of
another program becomes conversations, with the score that counts as the return where it is a number.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from manyturn.agents.play.episode import Ending
from manyturn.agents.trajectories.atomic_folder import new_folder
from manyturn.agents.trajectories.conversation import Message, conversations, of_exchanges
from manyturn.agents.trajectories.formats.chat import exchanges_of
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, from_plain, to_plain
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.random_keys import digest

_OURS = "manyturn"


def write(out: Path, trajectories: Iterable[Trajectory]) -> int:
    """Write a folder with a log; returns how many samples it has.

    Inspect's viewer lists a file of JSON only where its name begins with a time, and reads the task's name after it.
    """
    listed, now = list(trajectories), datetime.now(UTC).isoformat(timespec="seconds")
    text = masked(json.dumps(_log(listed, now), ensure_ascii=False, allow_nan=False)) + "\n"
    task = re.sub(r"[^A-Za-z0-9.]+", "-", str(listed[0].about.get("env") or "task"))[-60:]
    with new_folder(out) as folder:
        (folder / f"{now.replace(':', '-')}_{task}_{digest(text)[:16]}.json").write_text(text, encoding="utf-8")
    return len(listed)


def _log(trajectories: list[Trajectory], now: str) -> dict[str, Any]:
    about, samples = trajectories[0].about, [_sample(trajectory) for trajectory in trajectories]
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    errors = sum("error" in sample for sample in samples)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": now,
            "task": str(about.get("env")),
            "dataset": {"name": str(about.get("env")), "samples": len(ids), "sample_ids": ids},
            "model": str(about.get("policy")),
            "config": {},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},  # without one the viewer opens nothing
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples) - errors,
            "scores": [score for name in ("success", "return") for score in _mean(samples, name)],
        },
        "stats": {"started_at": now, "completed_at": now},
        "samples": samples,
    }


def _mean(samples: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    values = [sample["scores"][name]["value"] for sample in samples if name in sample["scores"]]
    if not values:
        return []
    mean = {"name": "mean", "value": sum(values) / len(values)}
    return [{"name": name, "scorer": name, "scored_samples": len(values), "metrics": {"mean": mean}}]


def _sample(trajectory: Trajectory) -> dict[str, Any]:
    row, messages = trajectory.episode, _messages(trajectory)
    scores = {"return": row["return"], "success": None if row["success"] is None else float(row["success"])}
    sample = {
        "id": f"{row['stage']}/{row['task']}",
        "epoch": row["member"] + 1,
        "input": messages[:1] if len(messages) < 2 or messages[0]["role"] == "user" else messages[:2],
        "target": "",
        "messages": messages,
        "scores": {name: {"value": value} for name, value in scores.items() if value is not None},
        "metadata": {_OURS: to_plain(trajectory)},
    }
    if Ending(row["ending"]).is_error:
        sample["error"] = {"message": row["cause"], "traceback": "", "traceback_ansi": ""}
    return sample


def _messages(trajectory: Trajectory) -> list[Message]:
    """Messages of the first role, and the final observation."""
    first = conversations(trajectory)[:1]
    messages = [_with_parts(message) for message in (first[0].messages if first else [])]
    return [*messages, {"role": "user", "content": trajectory.episode["last"]}]


def _with_parts(message: Message) -> Message:
    """A message with its reasoning as a part of its content, which is Inspect's place for it."""
    if "reasoning_content" not in message:
        return message
    reasoning = {"type": "reasoning", "reasoning": message["reasoning_content"]}
    return {"role": message["role"], "content": [reasoning, {"type": "text", "text": message["content"]}]}


def of_log(plain: Mapping[str, Any], name: str) -> list[Trajectory]:
    """The trajectories of a log. Raises TrajectoryError if it is none, or one without samples."""
    try:
        samples = plain.get("samples") or ()
        trajectories = [_of_sample(sample, plain, f"{name}/{number}") for number, sample in enumerate(samples)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrajectoryError(f"{name} is no log of Inspect ({type(error).__name__}: {error})") from None
    if not trajectories:
        raise TrajectoryError(f"{name} is a log without samples: inspect log dump gives them")
    return trajectories


def _of_sample(sample: Mapping[str, Any], log: Mapping[str, Any], name: str) -> Trajectory:
    ours = (sample.get("metadata") or {}).get(_OURS)
    if ours is not None:
        return from_plain(ours)
    system, exchanges, last = exchanges_of(sample["messages"])
    columns: dict[str, Any] = {"task": str(sample["id"]), "member": int(sample["epoch"]) - 1, "last": last}
    if (number := _number(sample.get("scores") or {})) is not None:
        columns |= {"return": number, "success": number == 1}
        columns["rewards"] = [*[0.0] * (len(exchanges) - 1), number] if exchanges else None
    if sample.get("error"):
        columns |= {"ending": Ending.INFRA_ERROR.value, "cause": str(sample["error"].get("message")), "return": None}
        columns["success"] = None
    trajectory = of_exchanges(exchanges, name, system, **columns)
    about = {"system": system, "policy": log["eval"].get("model"), "env": log["eval"].get("task")}
    return Trajectory(trajectory.episode, trajectory.turns, None, about)


def _number(scores: Mapping[str, Any]) -> float | None:
    """The first score, if it is a number; C and I are Inspect's for correct and incorrect."""
    value = next((score.get("value") for score in scores.values()), None)
    if isinstance(value, str):
        value = {"C": 1.0, "I": 0.0}.get(value)
    return float(value) if isinstance(value, int | float) else None
