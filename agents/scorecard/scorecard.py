"""``manyturn check --audit``: is an environment's reward paid to policies that do nothing useful?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium

from manyturn.agents.scorecard.contamination import overlap, texts_of
from manyturn.agents.scorecard.probe_play import played
from manyturn.agents.scorecard.verdicts import Rates, Thresholds, rates
from manyturn.envs.contract.registration.env_name import env_name
from manyturn.envs.hosting.handle.env_handle import EnvError
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.local.subprocess_call import OneShot, OneShotLost


@dataclass(frozen=True)
class Scorecard:
    """Scorecard of an environment's reward.

    Attributes:
        facts: split, tasks, seed and abilities of the environment.
        thresholds: rates from which on a probe is paid.
        rows: references and probes, in the order of play.
        overlaps: of held-out tasks with training tasks and with named data, as ``Overlap.plain`` gives them.
        not_probed: sentences on what was not probed, and why.
    """

    env: str
    env_args: Mapping[str, Any]
    facts: Mapping[str, Any]
    thresholds: Thresholds
    rows: tuple[Rates, ...]
    overlaps: tuple[Mapping[str, Any], ...]
    not_probed: tuple[str, ...]

    @property
    def paid(self) -> tuple[str, ...]:
        """Names of probes that are paid as the expert is."""
        return tuple(row.name for row in self.rows if row.verdict == "paid")

    @property
    def paid_in_part(self) -> tuple[str, ...]:
        """Names of probes that are paid for some tasks, and not by chance."""
        return tuple(row.name for row in self.rows if row.verdict == "paid in part")

    @property
    def passed(self) -> bool:
        """No probe is paid as the expert is."""
        return not self.paid

    def __getitem__(self, name: str) -> Rates:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no probe {name!r}: there are {', '.join(row.name for row in self.rows)}")

    def plain(self) -> dict[str, Any]:
        """All figures as JSON values."""
        return {
            **{"env": self.env, "env_args": dict(self.env_args), "facts": dict(self.facts)},
            **{"paid": list(self.paid), "paid_in_part": list(self.paid_in_part)},
            "thresholds": {"success": self.thresholds.success, "return": self.thresholds.value},
            "probes": [row.plain() for row in self.rows],
            "overlaps": [dict(one) for one in self.overlaps],
            "not_probed": list(self.not_probed),
        }


def scorecard(
    env: str | type[gymnasium.Env],
    kwargs: Mapping[str, Any] | None = None,
    samples: int = 20,
    seed: int = 0,
    *,
    data_files: Sequence[Path] = (),
    timeout: float = 60.0,
) -> Scorecard:
    """Probe an environment's reward, in a process of its own.

    >>> card = scorecard("manyturn/Maze-v0", samples=5)
    >>> card.passed, card["empty"].verdict
    (True, 'not paid')

    Args:
        env: an id, ``FILE.py:Class``, or a class that a file defines.
        kwargs: passed to the constructor, plain JSON values.
        samples: held-out tasks that each policy plays once.
        seed: decides which tasks are played, and what is random in their episodes.
        data_files: files that held-out tasks are compared with, such as data that a model was trained on.
        timeout: seconds that the environment may take for one answer.

    Raises:
        UnknownEnv, UnknownArgument: there is no such environment, or its constructor does not take an argument.
        ValueError: a data file cannot be read.
        OneShotLost: the environment did not answer in time, or ended its process.
    """
    if samples < 2:
        raise ValueError(f"samples must be at least 2, not {samples}: one task says nothing about others")
    files = [(Path(file).name, texts_of(Path(file))) for file in data_files]
    name = env_name(env)
    hello = hello_of(name, kwargs)
    facts, held_out, rows, overlaps = dict[str, Any](), dict[str, str](), list[dict[str, Any]](), list[Any]()
    with OneShot(played, (hello["name"], hello["kwargs"], samples, seed, timeout), hello, timeout) as work:
        try:
            for value in work:
                facts |= value.get("facts", {})
                held_out |= value.get("texts", {})
                overlaps += [value["overlap"]] if "overlap" in value else []
                rows += [value["row"]] if "row" in value else []
        except (OneShotLost, EnvError) as lost:
            raise type(lost)(f"{name} cannot be probed: {lost}") from None
    overlaps += [overlap(file, held_out, texts).plain() for file, texts in files]
    levels, judged = rates(rows, roles=len(facts["roles"]))
    return Scorecard(
        name, dict(kwargs or {}), facts, levels, tuple(judged), tuple(overlaps), tuple(_not_probed(facts, levels, rows))
    )


def _not_probed(facts: Mapping[str, Any], levels: Thresholds, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on what these probes cannot say of an environment."""
    gaps = list[str]()
    if not facts["expert"]:
        gaps.append(
            "It has no expert: returns have nothing to be compared with, a success at every task stands in for the "
            "expert's, and nothing can be memorised."
        )
    if facts["train"] is None:
        gaps.append(f"It has no training split apart from {facts['split']}: memory and overlap were not probed.")
    if not facts["admissible"] or not any(row["name"] == "first command" and row["turns"] for row in rows):
        gaps.append("It lists no admissible commands: random actions are letters, and none can be repeated.")
    if not facts["tools"]:
        gaps.append("It names no tools: injections stand in texts only.")
    if levels.success is None:
        gaps.append(
            "It does not say when the goal is reached, or its expert never reaches it: only returns are judged."
        )
    if len(facts["roles"]) > 1:
        gaps.append(
            f"It has the roles {', '.join(facts['roles'])}: each probe plays all of them, and only success is judged."
        )
    if any(row["errors"] for row in rows):
        gaps.append("Episodes that raised an error are left out: see the column, and run manyturn check.")
    if any(row["cut"] for row in rows):
        gaps.append(f"Turns are slow: episodes were ended after {facts['turns']} turns, and fewer tasks were played.")
    gaps.append(
        "Holes that only a policy which reads the task, or searches, can find; judges that are models, other than by "
        "the injected texts; code that an agent runs: see docs/grading.md for the grader of programs."
    )
    return gaps
