"""Attempts at tasks as a method reads them: what was seen and done turn by turn, and how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from manyturn.agents.evaluation.evaluate import Evaluation
from manyturn.agents.evaluation.summary import scored_rows
from manyturn.agents.records.episode_rows import Row

_LEFT_OUT = "\n[...]\n"


@dataclass(frozen=True)
class AttemptTurn:
    """One turn: what was seen, the action, and the reward."""

    observation: str
    action: str
    reward: float


@dataclass(frozen=True)
class Attempt:
    """One episode that did not end in an error.

    Attributes:
        member: place among the attempts at its task.
        success: True if the goal was reached; None where the environment does not say.
        score: sum of rewards; None where it is unknown.
        steps: K turns.
        last: the final observation.
        ending: kind of its end, with the limit that ended it.
    """

    member: int
    success: bool | None
    score: float | None
    steps: tuple[AttemptTurn, ...]
    last: str
    ending: str

    @property
    def won(self) -> bool:
        """True if it succeeded; where success is not known, if its rewards come to more than nothing."""
        return bool(self.success) if self.success is not None else bool(self.score and self.score > 0)

    @property
    def outcome(self) -> str:
        """Its ending, in words."""
        verdict = "success" if self.won else "failure"
        score = "" if self.score is None else f", score {self.score:g}"
        return f"{verdict}{score} after {len(self.steps)} turns ({self.ending})"

    def transcript(self, longest: int) -> str:
        """Observations and actions in order; the middle of a long one is left out.

        Args:
            longest: most characters.
        """
        lines = [line for step in self.steps for line in (f"Seen: {step.observation}", f"Done: {step.action}")]
        text = "\n".join([*lines, f"Seen: {self.last}", f"End: {self.outcome}"])
        if len(text) <= longest:
            return text
        half = max((longest - len(_LEFT_OUT)) // 2, 1)
        return f"{text[:half]}{_LEFT_OUT}{text[-half:]}"


@dataclass(frozen=True)
class Attempts:
    """G attempts at one task.

    Attributes:
        task, content: of the task.
        attempts: those that did not end in an error, in order.
    """

    task: str
    content: str
    attempts: tuple[Attempt, ...]

    @property
    def about(self) -> str:
        """First observation of the task; empty where nothing was played."""
        return next((one.steps[0].observation for one in self.attempts if one.steps), "")

    @property
    def is_solved(self) -> bool:
        return any(attempt.won for attempt in self.attempts)

    @property
    def is_mixed(self) -> bool:
        """True if attempts differ in what they earned, so that they can be contrasted."""
        return len({(attempt.won, attempt.score) for attempt in self.attempts}) > 1


def attempts_of(evaluation: Evaluation) -> list[Attempts]:
    """The attempts of an evaluation, task by task, in the order of its panel."""
    turns: dict[tuple[str, int], list[Row]] = {}
    for row in evaluation.turns:
        turns.setdefault((row["task"], row["member"]), []).append(row)
    by_task: dict[str, list[Attempt]] = {task: [] for task in evaluation.panel.tasks}
    for row in scored_rows(evaluation.episodes):
        by_task[row["task"]].append(_attempt(row, turns.get((row["task"], row["member"]), [])))
    contents = dict(zip(evaluation.panel.tasks, evaluation.panel.contents, strict=True))
    return [Attempts(task, contents[task], tuple(attempts)) for task, attempts in by_task.items()]


def _attempt(row: Row, turns: Sequence[Row]) -> Attempt:
    steps = tuple(AttemptTurn(turn["observation"], turn["action"] or turn["reply"], turn["reward"]) for turn in turns)
    ending = f"{row['ending']} by {row['cause']}" if row["cause"] else row["ending"]
    return Attempt(row["member"], row["success"], row["return"], steps, row["last"], ending)
