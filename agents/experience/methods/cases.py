"""Case memory: past attempts are stored as cases, and a task is played with the cases of similar tasks at hand.

Source: Zhou et al. 2025, "Memento: Fine-tuning LLM Agents without Fine-tuning LLMs" (AgentFly), arXiv 2508.16153,
section 4.2: the non-parametric memory, a write after each episode and a read of the K most similar states, K = 4 in
section 5. A case is the state, the plan and the reward; cases of failures are stored as well, marked as such.

Differences: BM25 over first observations retrieves, and embeddings only with the option ``retrieval``; a case holds the
actions, in place of a planner's plan; a task has one case, its best; the parametric memory, a trained Q-function over
cases, is left out.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from manyturn.agents.experience.attempts import Attempt, Attempts
from manyturn.agents.experience.method import METHODS, Method, MethodConfig, Round, Write
from manyturn.agents.experience.store import ExperienceEntry, numbered


class CasesConfig(MethodConfig):
    name: Literal["cases"] = "cases"
    shown: int = Field(default=4, ge=1)
    """Cases that the policy is shown at most; the paper has 4."""
    failures: bool = True
    """Store failed attempts too, at tasks that no attempt has solved."""
    longest: int = Field(default=2000, ge=1)
    """Longest first observation in a case, in characters; the rest of a longer one is left out."""


@METHODS.register(CasesConfig)
class Cases(Method):
    """Store the shortest solved attempt at each task; asks no writer."""

    writes = False

    def __init__(self, config: CasesConfig):
        self.config, self.shown = config, config.shown

    async def learn(self, played: Round, write: Write) -> Sequence[ExperienceEntry]:
        entries = list(played.experience.entries)
        for number, of in enumerate(played.tasks, 1):
            best = min(of.attempts, key=lambda one: (not one.won, -(one.score or 0.0), len(one.steps)), default=None)
            if best is None or not of.about or not (best.won or self.config.failures):
                continue
            older = [entry for entry in entries if entry.task == of.task]
            if any(entry.success for entry in older) or (older and not best.won):
                continue  # a task that has a case of success needs no second one, nor a second failure
            entries = [entry for entry in entries if entry not in older]
            entries.append(played.case(number, self._text(of, best), of, success=best.won))
        return entries

    def _text(self, of: Attempts, attempt: Attempt) -> str:
        seen = of.about if len(of.about) <= self.config.longest else f"{of.about[: self.config.longest]} [...]"
        advice = "These actions led to success" if attempt.won else "These actions led to failure, avoid them"
        return f"Task: {seen}\n{advice}:\n{numbered([step.action for step in attempt.steps])}"
