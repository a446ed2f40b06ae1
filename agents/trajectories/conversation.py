"""A trajectory as messages, as chat models are given them: one conversation for each role."""

from typing import Any, NamedTuple

from manyturn.agents.records.episode_rows import EPISODES, TURNS, Row
from manyturn.agents.trajectories.trajectory import Trajectory
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.random_keys import digest

Message = dict[str, Any]
SYSTEM, USER, ASSISTANT = "system", "user", "assistant"


class Exchange(NamedTuple):
    """An observation, the reply to it, and its reasoning where that stood next to the reply."""

    observation: str
    reply: str
    reasoning: str = ""


class RoleMessages(NamedTuple):
    """The conversation of one role.

    Attributes:
        role: its name.
        messages: its system text if there is one, and in turns what it read and what it said; the last is its reply.
        turns: the rows of its turns.
    """

    role: str
    messages: list[Message]
    turns: list[Row]


def conversations(trajectory: Trajectory) -> list[RoleMessages]:
    """The conversation of each role that had a turn, in the order of their first turns."""
    system = trajectory.about.get("system")
    parted: dict[str, list[Row]] = {}
    for row in trajectory.turns:
        parted.setdefault(row["role"], []).append(row)
    conversations_of_roles = []
    for role, rows in parted.items():
        messages: list[Message] = [message(SYSTEM, system)] if system else []
        for row in rows:
            apart = {} if row["reasoning"] in row["reply"] else {"reasoning_content": row["reasoning"]}
            messages += [message(USER, row["observation"]), message(ASSISTANT, row["reply"]) | apart]
        conversations_of_roles.append(RoleMessages(role, messages, rows))
    return conversations_of_roles


def message(role: str, text: str) -> Message:
    """A message."""
    return {"role": role, "content": text}


def of_exchanges(exchanges: list[Exchange], name: str, system: str | None, **columns: Any) -> Trajectory:
    """The trajectory of a conversation of another program.

    What is not known is missing: it counts as completed, without a return, and not as a success or a failure.

    Args:
        exchanges: K observations with their replies.
        name: of its task, where ``columns`` has none.
        columns: columns of the episode's row; ``rewards``: K rewards.
    """
    rewards = columns.pop("rewards", None)
    first = exchanges[0][0] if exchanges else ""
    episode = {key: columns.get(key) for key in EPISODES.kinds}
    task = columns.get("task") or name
    parts = {} if rewards is None else {"outcome": float(sum(rewards))}
    usual: Row = {
        "task": task, "content": digest(system or "", first), "split": "unknown", "tags": [], "member": 0,
        "stage": "imported", "seed": 0, "ending": "completed", "cause": "", "attempts": 1, "turns": len(exchanges),
        "inner_turns": 0, "invalid_actions": 0, "broken_formats": 0, "not_understood": 0, "parts": parts, "last": "",
        "measures": {}, "faults": {}, "seconds_policy": 0.0, "seconds_env": 0.0,
    }  # fmt: skip
    episode |= {key: value for key, value in usual.items() if episode[key] is None}
    turns = [_turn(number, exchange, episode, rewards) for number, exchange in enumerate(exchanges)]
    return Trajectory(episode, turns, about={"system": system})


def _turn(number: int, exchange: Exchange, episode: Row, rewards: list[float] | None) -> Row:
    read, reply, reasoning = Exchange(*exchange)
    reward = 0.0 if rewards is None else float(rewards[number])
    row: Row = dict.fromkeys(TURNS.kinds)
    row |= {key: episode[key] for key in ("task", "stage", "member")}
    row |= {"turn": number, "role": ONE_ROLE, "observation": read, "reply": reply, "action": reply}
    row |= {"reasoning": reasoning}
    row |= {"format_valid": True, "understood": True, "reward": reward, "reward_parts": {}, "anchor": digest(read)}
    return row | {"seconds_policy": 0.0, "seconds_env": 0.0}
