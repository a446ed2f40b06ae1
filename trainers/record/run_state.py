"""State of a run besides its weights."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class State:
    """Saved in each checkpoint as plain values.

    Attributes:
        step: steps that are done.
        feedback: of the last step on its tasks, rows of ``TaskFeedback``; the next curriculum reads it.
            Where tasks are drawn ahead: of the steps since the last draw.
        drawn: numbers of the tasks of the steps to come, a list for each, where they are drawn ahead: from the first
            step on for which a group was drawn that is left.
        lag: how many steps lie between that step and the next one.
        gone: groups of those steps that are not left, each by its step and its number.
        lengths: where groups may overtake others: how many episodes had each number of turns, of those that were learnt
            from (learnt), of these and those that were dropped after their end (ended), of those before it (cut).
        grown: tasks that a curriculum has made, as plain values by their numbers: those of the last step and of the
            steps to come. Their numbers follow those of the training split.
        made: how many it has made.
        seen: contents of all tasks that were learnt from.
        explored: what the exploration before the first step did; empty where it is to come, or there is none.
        played: episodes, turns and tokens said, of exploration and of all steps together.
        warming: progress of a warm-up that is not over, see ``WarmupProgress``; empty before and after it.
        warmup: what the warm-up did.
        before: held-out figures of the warmed-up policy, by name.
        memory: what curriculum and credit stages remember from step to step.
        learned: steps that taught something.
        silent: steps since the last one that did.
        silence: the sentence about these; empty where there never were any.
        validated: the last step after which validation tasks were played.
        seconds: what the run took so far, over all processes that worked on it.
        config: the configuration that led here, as plain values.
        config_changes: edits of it that were accepted when the run was resumed: the step, and each entry's place with
            both values.
        partners: identity of the policy of each role that does not learn, as plain values by role, see
            ``PartnerIdentity``.
        env_identity: of the environment that the next step is played in, as plain values.
        env_changes: changes of the environment that were accepted when the run was resumed: the step, the identity
            before, and what differs.
        notices: what the run has said besides its figures.
        batch_limits: most replies that the engine of each policy computes together, after memory ran out.
        stored: index of the buffer of episodes, rows of ``StoredEpisode``, oldest first.
        judged: what the judge's verdicts took so far: tokens of prompts, of replies, and USD.
        past: for each past self, the numbers of steps that were done when its copies of the weights were taken.
    """

    step: int = 0
    feedback: list[list[Any]] = field(default_factory=list)
    drawn: list[list[int]] = field(default_factory=list)
    lag: int = 0
    gone: list[list[int]] = field(default_factory=list)
    lengths: dict[str, list[int]] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    grown: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    learned: int = 0
    silent: int = 0
    silence: str = ""
    validated: int = 0
    seen: set[str] = field(default_factory=set)
    warming: dict[str, Any] = field(default_factory=dict)
    warmup: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    explored: dict[str, Any] = field(default_factory=dict)
    played: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("episodes", "turns", "tokens"), 0))
    seconds: float = 0.0
    config: dict[str, Any] = field(default_factory=dict)
    config_changes: list[dict[str, Any]] = field(default_factory=list)
    partners: dict[str, dict[str, str]] = field(default_factory=dict)
    env_identity: dict[str, Any] = field(default_factory=dict)
    env_changes: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    batch_limits: dict[str, int] = field(default_factory=dict)
    stored: list[list[Any]] = field(default_factory=list)
    past: dict[str, list[int]] = field(default_factory=dict)
    judged: list[Any] = field(default_factory=list)

    @property
    def first_left(self) -> int:
        """The first step for which a group was drawn that is left."""
        return self.step + 1 - self.lag

    def draw_anew(self) -> None:
        """Forget what was drawn ahead. Where groups have overtaken others, tasks are drawn for steps after those."""
        if self.gone or self.lag:
            self.lag -= len(self.drawn)
        self.drawn, self.gone = [], []

    def count(self, episodes: int, turns: int, tokens: int) -> dict[str, int]:
        """More was played for training; returns how much it is by now, as metrics."""
        more = {"episodes": episodes, "turns": turns, "tokens": tokens}
        self.played = {name: self.played[name] + number for name, number in more.items()}
        return {"played_episodes": self.played["episodes"], "played_tokens": self.played["tokens"]}

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "seen": sorted(self.seen)}
