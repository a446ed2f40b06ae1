"""OpenEnv's ``TrainingTrace``: a line of JSON for each episode, with the ids of its tokens, for trainers that read it.

Source: ``openenv.core.harness.training`` in the package openenv 0.10. Each turn is a call of an engine: prompt, reply,
the reply's log-probabilities, and a mask over both that is 1 on the reply. The format has no place for a reward, so
what else is known stands in the turns' ``metadata``, and that of the first holds the whole trajectory.
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
    for one in trajectories:
        if one.ledger is None and one.turns:
            raise TrajectoryError(
                "a TrainingTrace consists of ids of tokens, which were not kept: train with --keep-tokens true, or "
                "choose --as atif"
            )
        if one.turns and one.ledger is not None and any(branch.allowed for branch in one.ledger.branches):
            raise TrajectoryError(
                "replies were limited to admissible commands, and a TrainingTrace has no place for what was possible: "
                "choose --as atif"
            )
        if one.ledger is not None and (plain := trace_of(one))["turns"]:
            yield canonical(plain)


def trace_of(one: Trajectory) -> dict[str, Any]:
    """An episode whose tokens were kept as the values of a ``TrainingTrace``. Turns without a token are left out."""
    assert one.ledger is not None
    place = f"{one.episode['stage']}/{one.episode['task']}/{one.episode['member']}"
    turns = [
        _turn(f"{place}/{number}", said, row, one)
        for number, (said, row) in enumerate(zip(said_of(one.ledger), one.turns, strict=False))
        if said.prompt and said.reply
    ]
    if turns:
        turns[0]["metadata"][_OURS] |= {"trajectory": to_plain(one)}
    return {"schema_version": SCHEMA, "turns": turns}


def _turn(name: str, said: Said, row: Mapping[str, Any], one: Trajectory) -> dict[str, Any]:
    about = {"reward": row["reward"], "return": one.episode["return"], "success": one.episode["success"]}
    return {
        "node_id": name,
        "prompt_token_ids": said.prompt,
        "completion_token_ids": said.reply,
        "per_token_logps": said.logprobs,
        "loss_mask": [0] * len(said.prompt) + [1] * len(said.reply),
        "metadata": {_OURS: {**pack(about), "version": said.version, "role": said.role}},
    }


def of_line(line: str, name: str) -> Trajectory:
    """The trajectory of a line that we wrote. Raises TrajectoryError for any other: it has ids alone, and no text."""
    try:
        return from_plain(json.loads(line)["turns"][0]["metadata"][_OURS]["trajectory"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TrajectoryError(
            f"{name} is no TrainingTrace of ours ({type(error).__name__}: {error}): others have ids of tokens and no "
            "text; name ATIF or chat lines"
        ) from None


def is_trace(path: Path) -> bool:
    """Whether a file of lines begins with a ``TrainingTrace``."""
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
