"""Guidance of attempts: later members of a group read a text where all attempts before them failed.

    group   the first ``rollout.group - members`` episodes read nothing; the others are played in ``levels`` rounds
    round i reads a text of level i if no episode of the group has succeeded so far, and nothing otherwise

The text is made when the round begins, from the environment's expert or from an earlier attempt. Only training
episodes read one: warm-up, validation and evaluations show none.

Sources: Scaf-GRPO, arXiv 2510.19807 (hints in tiers); NuRL, arXiv 2509.25666, and GHPO, arXiv 2507.10628 (hints only
where all attempts fail); Critique-GRPO, arXiv 2506.03106 (refinement after a critique).

Implementation:
1. Members are played in rounds, so that the order in which episodes end decides nothing. An attempt has failed if its
   ``success`` is False; where one ended in an error, or does not state its success, that one says nothing.
2. ``reads = "plain"``: the learner reads the prompt without the text. The ratio of a guided token begins at 1, since
   its old log-probability is the learner's own after the plain prompt. With ``objective.correction`` its weight is the
   likelihood of the reply without the text over that with it.
3. ``reads = "guided"``: the learner reads what the policy read. Then nothing is off-policy, and what is learnt is to
   follow the text.
4. Texts are written to a journal before they are read, so that a run which was killed makes none of them again.

Watch: ``guided``, the share of episodes that read a text: 0, every group has a success of its own. ``guided_success``:
0, the texts do not help. ``unguided``, members for which no text could be made, or none that fits agent.max_context.
``plain_success`` is that of episodes without a text; ``success`` counts both. ``groups_without_signal`` next to that of
a run without guidance.
``engine_kl`` is large where the learner reads other prompts than the engine.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.hosting.local.seats import Seats


class Guide(NamedTuple):
    """The order for one text.

    Attributes:
        level: round of guidance, from 0.
        source: an earlier attempt of the group, which failed.
    """

    level: int
    source: Episode


Guides = dict[EpisodeKey, Guide | None]


@dataclass(frozen=True)
class Workshop:
    """Means of making texts: the environment's seats, and limits of what is played in them."""

    seats: Seats
    max_turns: int
    patience: Patience


Texts = Sequence[str | None]
GUIDANCE: Registry[Awaitable[Texts]] = Registry(
    "guidance", "manyturn.trainers.play.guidance.hints", "manyturn.trainers.play.guidance.critique"
)
"""Makers of texts: (workshop, guides) -> a text for each guide, None where none can be made."""


class GuidanceConfig(Named):
    """Base of the options of guidance. A subclass says how many ``levels`` there are, and what it needs."""

    members: int = Field(default=4, ge=1)
    """Last episodes of a group that read a text if all before them failed; fewer than rollout.group."""
    reads: Literal["plain", "guided"] = "plain"
    """Prompt that the learner reads in guided episodes: without the text, or with it as the policy did."""
    after: int = Field(default=0, ge=0)
    """Steps at the beginning of the run without guidance."""

    @property
    def levels(self) -> int:
        """Rounds of guided episodes."""
        raise NotImplementedError

    @property
    def together(self) -> int | None:
        """Texts that are made before they are written down; None for all of a round."""
        return None

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        rollout = run.rollout
        if self.members >= rollout.group:
            return (
                f"rollout.guidance.members = {self.members} leaves no attempt without a text of rollout.group = "
                f"{rollout.group}: lower it, raise rollout.group, or leave guidance out"
            )
        if self.members < self.levels:
            return (
                f"rollout.guidance.members = {self.members} are fewer than its {self.levels} levels: raise members, or "
                "give fewer levels"
            )
        if run.steps and self.after >= run.steps:
            return (
                f"rollout.guidance has no effect where rollout.guidance.after = {self.after} of steps = {run.steps}: "
                "lower after, or raise steps"
            )
        return self._refuse_others(run, env) or self._refuse_ratio(run)

    def _refuse_others(self, run: Any, env: EnvFacts | None) -> str | None:
        """Refuse what plays episodes in another way, or of several roles."""
        for section in ("branching", "tempering"):
            if getattr(run.rollout, section) is not None:
                return f"rollout.guidance and rollout.{section} do not go together: leave one of them out"
        if run.roles or (env is not None and len(env.roles) > 1):
            return "rollout.guidance speaks to one policy in one role, and here there are several: leave it out"
        if fault := run.agent.refuse_inner("rollout.guidance adds a text before an episode's first action"):
            return fault
        return None

    def _refuse_ratio(self, run: Any) -> str | None:
        if self.reads == "guided":
            return None
        if run.learner.old_logprobs == "engine":
            return (
                "rollout.guidance.reads = 'plain' learns from other prompts than the engine drew with, and "
                "learner.old_logprobs = 'engine' would take its log-probabilities for the policy's: set it to "
                "'learner', or reads to 'guided'"
            )
        if run.objective.needs_fresh_samples and run.objective.correction is None:
            return (
                f"rollout.guidance.reads = 'plain' learns from replies that the policy gave to other prompts, and "
                f"{run.objective.name} needs samples of its own: take an objective with a ratio, such as clip, give "
                "objective.correction, or set reads to 'guided'"
            )
        return None


def guides(keys: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode], group: int, config: Any) -> Guides:
    """The episodes that can begin, as far as what was played shows, and what text each needs; None is no text.

    It depends on nothing else, so that a run which was killed comes to the same orders.

    Args:
        keys: E keys, each ``group`` in a row being the members of a group.
        played: those that have ended; while some that can begin have not, more may follow.
        config: a ``GuidanceConfig``.
    """
    begun: Guides = {}
    for first in range(0, len(keys), group):
        begun |= _guides_of_group(keys[first : first + group], played, config)
    return begun


def _guides_of_group(
    members: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode], config: GuidanceConfig
) -> Guides:
    free = len(members) - config.members
    begun: Guides = dict.fromkeys(members[:free])
    rounds = np.array_split(np.arange(free, len(members)), config.levels)
    for level, places in enumerate(rounds):
        if not all(key in played for key in begun):
            return begun
        sound = [played[key] for key in begun if not played[key].ending.is_error]
        failed = [episode for episode in sound if episode.success is False]
        if not failed or len(failed) < len(sound):
            return begun | dict.fromkeys(members[len(begun) :])
        latest = failed[-len(rounds[level - 1]) :] if level else failed
        for number, place in enumerate(places):
            begun[members[place]] = Guide(level, latest[number % len(latest)])
    return begun


def guidance_figures(episodes: Sequence[Episode], group: int, step: int, config: Any) -> dict[str, float]:
    """Metrics of a step with guidance.

    Args:
        episodes: all members of a group next to each other.
        config: a ``GuidanceConfig``.
    """
    scored = [episode for episode in episodes if episode.success is not None]
    by_kind = {
        "guided_success": [bool(episode.success) for episode in scored if episode.guidance],
        "plain_success": [bool(episode.success) for episode in scored if not episode.guidance],
    }
    means = {name: float(np.mean(successes)) for name, successes in by_kind.items() if successes}
    orders: Guides = {}
    if step > config.after:
        orders = guides([episode.key for episode in episodes], {e.key: e for e in episodes}, group, config)
    without = sum(orders.get(episode.key) is not None and not episode.guidance for episode in episodes)
    guided = float(np.mean([bool(episode.guidance) for episode in episodes]))
    return {"guided": guided, "unguided": without, **means}
