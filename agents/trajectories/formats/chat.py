"""Chat JSONL for supervised fine-tuning: a line ``{"messages": [...], ...}`` for each conversation.

``messages`` is what trainers read. Next to it are what is known of the episode, and ``rewards``, one for each reply.
Ids of tokens, log-probabilities, reward parts and credit have no place in it and are lost.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from manyturn.agents.play.endpoint.completion import REASONING
from manyturn.agents.text.reasoning import split_reasoning
from manyturn.agents.trajectories.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Exchange,
    Message,
    conversations,
    of_exchanges,
)
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, canonical, pack

LOST = "ids of tokens, log-probabilities, reward parts and credit"
KEPT = ("task", "content", "split", "difficulty", "member", "stage", "seed", "success", "return", "ending", "cause")


def lines_of(trajectories: Iterable[Trajectory]) -> Iterator[str]:
    """A line for each conversation in which something was said."""
    for trajectory in trajectories:
        for role, messages, turns in conversations(trajectory):
            record = {
                "messages": messages,
                **{name: pack(trajectory.episode[name]) for name in KEPT},
                "role": role,
                "rewards": [pack(turn["reward"]) for turn in turns],
                "env": trajectory.about.get("env"),
                "policy": trajectory.about.get("policy"),
            }
            yield canonical(record)


def read_chat(path: Path) -> list[Trajectory]:
    """The conversations of a file of lines, be they ours or not.

    Neighbouring messages of one role are one, with an empty line between them. What a tool answers counts as read. What
    is said before anything was read is taken as read, and what is read after the last reply is the final observation.

    Raises:
        TrajectoryError: a line is no conversation.
    """
    trajectories = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            messages = record["messages"]
            system, exchanges, last = exchanges_of(messages)
            columns = {name: record.get(name) for name in KEPT}
            columns["rewards"] = _rewards(record, len(exchanges))
            trajectories.append(of_exchanges(exchanges, f"{path.name}/{number}", system, last=last, **columns))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrajectoryError(
                f"{path}, line {number} is no conversation ({type(error).__name__}: {error}): it needs messages with "
                "role and content"
            ) from None
    return trajectories


def exchanges_of(messages: Iterable[Mapping[str, Any]]) -> tuple[str | None, list[Exchange], str]:
    """Of a list of messages the system text, what was read and said in turn, and what was read last."""
    system, merged = list[str](), list[Message]()
    for message in messages:
        role, text = message["role"], text_of(message)
        if role in (SYSTEM, "developer"):
            system.append(text)
            continue
        role = ASSISTANT if role == ASSISTANT else USER
        reasoning = reasoning_of(message) if role == ASSISTANT else ""
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += f"\n\n{text}"
            merged[-1]["reasoning"] = "\n".join(filter(None, (merged[-1]["reasoning"], reasoning)))
        else:
            merged.append({"role": role, "content": text, "reasoning": reasoning})
    if merged and merged[0]["role"] == ASSISTANT:
        merged.insert(0, {"role": USER, "content": "", "reasoning": ""})
    last = merged.pop()["content"] if merged and merged[-1]["role"] == USER else ""
    pairs = zip(merged[::2], merged[1::2], strict=True)
    exchanges = [Exchange(read["content"], reply["content"], reply["reasoning"]) for read, reply in pairs]
    return "\n\n".join(system) or None, exchanges, last


def reasoning_of(message: Mapping[str, Any]) -> str:
    """Reasoning of a message: next to its content, as a part of it, or between tags in its text."""
    content = message.get("content")
    parts = (
        [part.get("reasoning") for part in content if part.get("type") == "reasoning"]
        if isinstance(content, list)
        else []
    )
    beside = next((message[name] for name in REASONING if isinstance(message.get(name), str)), None)
    within = split_reasoning(text_of({"content": content})).reasoning
    return "\n".join(part for part in (beside, *parts, within) if isinstance(part, str) and part)


def text_of(message: Mapping[str, Any]) -> str:
    """Text of a message, with its tool calls as blocks that the reply format tool_call reads."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
    texts = [content] if content else []
    for call in message.get("tool_calls") or ():
        texts.append(call_block(call["function"]["name"], call["function"]["arguments"]))
    if not isinstance(content, str | None) or not all(isinstance(text, str) for text in texts):
        raise TypeError("content is no text")
    return "\n".join(texts)


def call_block(name: str, arguments: Any) -> str:
    """A call of a tool as text."""
    parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': parsed}, ensure_ascii=False)}\n</tool_call>"


def _rewards(record: Mapping[str, Any], count: int) -> list[float] | None:
    rewards = record.get("rewards")
    if (
        isinstance(rewards, list)
        and len(rewards) == count
        and all(isinstance(reward, int | float) for reward in rewards)
    ):
        return [float(reward) for reward in rewards]
    return None
