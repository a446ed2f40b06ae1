"""Tempered members: part of a group is drawn at another temperature, to hold the policy's entropy at a target.

    T = high  if the entropy of the step before is at most the target,  low  otherwise;  before the first step: high

Learnt from as if they had been drawn at the run's temperature, good episodes of high temperature raise the policy's
entropy, and those of low temperature lower it: see the advantage ``arbitrary_entropy``.

Source: Arbitrary Entropy Policy Optimization, arXiv 2510.08141; temperatures as in the authors' code (597358816/AEPO).

Implementation:
1. The last ``members`` of each group of ``rollout.group`` are tempered; the entropy is that of the others, over the
   tokens that they drew in the step before, in nats. It is remembered with the checkpoint.
2. The ratio of a tempered token begins at 1: its old log-probability is the learner's at the run's temperature.

Differences: theirs draws a second group for a quarter of the tasks, and measures the entropy over the update's tokens,
tempered ones included.

Watch: ``drawn_entropy`` next to the target, and ``tempered_temperature``; if the entropy does not come near, raise
``members`` or the distance of ``high`` and ``low`` from the run's temperature.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class Tempering(Options):
    """Number of tempered members of a group, and the entropy that they steer to."""

    target: float = Field(gt=0)
    """Entropy of a drawn token, in nats, that the policy is to be held at."""
    members: int = Field(default=2, ge=1)
    """Episodes of a group that are tempered; fewer than rollout.group."""
    high: float = Field(default=1.2, gt=0)
    """Temperature while the entropy is at most the target."""
    low: float = Field(default=0.8, gt=0)
    """Temperature while it is above."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.members >= run.rollout.group - 1:
            return (
                f"rollout.tempering.members = {self.members} leaves fewer than two of rollout.group = "
                f"{run.rollout.group} to compare: lower it, or raise rollout.group"
            )
        if not self.low < run.sampling.temperature < self.high:
            return (
                f"rollout.tempering.low = {self.low:g} and high = {self.high:g} are to lie below and above "
                f"sampling.temperature = {run.sampling.temperature:g}: move them"
            )
        if run.roles or run.rollout.branching is not None:
            other = "[roles]" if run.roles else "rollout.branching"
            return f"rollout.tempering and {other} do not go together: leave one of them out"
        if run.learner.old_logprobs == "engine":
            return (
                "rollout.tempering draws at other temperatures than the learner's, and learner.old_logprobs = 'engine' "
                "would take those for the policy's: set it to 'learner', in synchronous order"
            )
        if "tempered" not in run.credit.needs:
            return (
                "rollout.tempering draws episodes that only the advantage arbitrary_entropy knows how to learn from: "
                "take it, or leave tempering out"
            )
        return None

    def temperature(self, entropy: float | None) -> float:
        """Temperature of tempered episodes after a step of this entropy, which is None before the first.

        >>> [Tempering(target=0.5).temperature(entropy) for entropy in (None, 0.5, 0.6)]
        [1.2, 1.2, 0.8]
        """
        return self.high if entropy is None or entropy <= self.target else self.low

    def temperatures(self, keys: Iterable[EpisodeKey], group: int, entropy: float | None) -> dict[EpisodeKey, float]:
        """Key of each tempered episode among these -> its temperature."""
        temperature = self.temperature(entropy)
        return {key: temperature for key in keys if key.member % group >= group - self.members}
