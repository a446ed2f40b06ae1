"""OpenEnv's ``TrainingTrace``: a line of JSON for each episode, with the ids of its tokens, for trainers that read it.

Source: ``openenv.core.harness.training`` in the package openenv 0.10. Each turn is a call of an engine: prompt, reply,
the reply's log-probabilities, and a mask over both that is 1 on the reply. The format has no place for a reward, so
what else is known stands in the turns' ``metadata``, and that of the first turn holds the full trajectory.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from manyturn.agents.trajectories.ledger_turns import Said, said_of
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, canonical, from_plain, pack, to_plain

SCHEMA = 1
LOST = "episodes without a reply"
_OURS = "manyturn"


def lines_of(trajectories: Iterable[Trajectory]) -> Iterator[str]:
    """A line for each episode with a reply.

    Raises:
        TrajectoryError: the ids of tokens were not kept, or replies were limited, which the format cannot say.
    """
    for trajectory in trajectories:
        if trajectory.ledger is None and trajectory.turns:
            raise TrajectoryError(
                "a TrainingTrace consists of ids of tokens, which were not kept: train with --keep-tokens true, or "
                "choose --as atif"
            )
        if (
            trajectory.turns
            and trajectory.ledger is not None
            and any(branch.allowed or branch.commands for branch in trajectory.ledger.branches)
        ):
            raise TrajectoryError(
                "replies were limited to admissible commands, and a TrainingTrace has no place for what was possible: "
                "choose --as atif"
            )
        if trajectory.ledger is not None and (plain := trace_of(trajectory))["turns"]:
            yield canonical(plain)


def trace_of(trajectory: Trajectory) -> dict[str, Any]:
    """An episode whose tokens were kept as the values of a ``TrainingTrace``. Turns without a token are left out."""
    assert trajectory.ledger is not None
    place = f"{trajectory.episode['stage']}/{trajectory.episode['task']}/{trajectory.episode['member']}"
    turns = [
        _turn(f"{place}/{number}", reply, row, trajectory)
        for number, (reply, row) in enumerate(zip(said_of(trajectory.ledger), trajectory.turns, strict=False))
        if reply.prompt and reply.reply
    ]
    if turns:
        turns[0]["metadata"][_OURS] |= {"trajectory": to_plain(trajectory)}
    return {"schema_version": SCHEMA, "turns": turns}


def _turn(name: str, reply: Said, row: Mapping[str, Any], trajectory: Trajectory) -> dict[str, Any]:
    about = {"reward": row["reward"], "return": trajectory.episode["return"], "success": trajectory.episode["success"]}
    return {
        "node_id": name,
        "prompt_token_ids": reply.prompt,
        "completion_token_ids": reply.reply,
        "per_token_logps": reply.logprobs,
        "loss_mask": [0] * len(reply.prompt) + [1] * len(reply.reply),
        "metadata": {_OURS: {**pack(about), "version": reply.version, "role": reply.role}},
    }


def of_line(line: str, name: str) -> Trajectory:
    """The trajectory of a line that we wrote. Raises TrajectoryError for any other: it has only ids, and no text."""
    try:
        return from_plain(json.loads(line)["turns"][0]["metadata"][_OURS]["trajectory"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TrajectoryError(
            f"{name} is no TrainingTrace of ours ({type(error).__name__}: {error}): others have ids of tokens and no "
            "text; name ATIF or chat lines"
        ) from None


def is_trace(path: Path) -> bool:
    """True if a file of lines begins with a ``TrainingTrace``."""
    with path.open(encoding="utf-8") as file:
        first = next((line for line in file if line.strip()), "")
    try:
        plain = json.loads(first)
    except ValueError:
        return False
    return isinstance(plain, dict) and "turns" in plain and "messages" not in plain


def read(path: Path) -> list[Trajectory]:
    """The trajectories of a file of lines."""
    with path.open(encoding="utf-8") as file:
        return [of_line(line, f"{path}, line {number}") for number, line in enumerate(file, 1) if line.strip()]
