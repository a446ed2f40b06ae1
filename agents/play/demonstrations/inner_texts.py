"""Scripted inner turns: texts of a demonstrator before an action that it is about to take.

    plan       the action
    draft      the action, or half of the time another admissible one
    critique   agreement with the draft, or the action in its place
    summary    what the environment has shown after the first observation, each text once

A demonstration only shows the language of inner turns; what is useful in them is learnt from rewards.
"""

from collections.abc import Sequence

import numpy as np

from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import Answer

_PLAN, _RIGHT, _BETTER = "I will {}.", "It is right.", "Better: {}."


class InnerTexts:
    """Texts of one episode, by kind of inner turn; of a kind that is not listed above, the action."""

    def __init__(self, key: EpisodeKey):
        self._key, self._rngs = key, dict[str, np.random.Generator]()
        self._drafts, self._shown = dict[str, str](), dict[str, dict[str, None]]()

    def of(self, kind: str, step: Answer, action: str) -> str:
        """The text of an inner turn.

        Args:
            action: that follows.
        """
        if kind == "plan":
            return _PLAN.format(action)
        if kind == "draft":
            draft = self._drafts[step.role] = self._draft(step, action)
            return draft
        if kind == "critique":
            return critique(self._drafts.get(step.role, action), action)
        if kind == "summary":
            return " ".join([*self._shown.get(step.role, {})][1:]) or action
        return action

    def note(self, step: Answer) -> None:
        """Note what an agent has read before its action."""
        self._shown.setdefault(step.role, {}).setdefault(step.observation)

    def _draft(self, step: Answer, action: str) -> str:
        if step.role not in self._rngs:
            self._rngs[step.role] = generator("draft", *self._key, step.role)
        rng, others = self._rngs[step.role], step.admissible or ()
        is_other = bool(others) and rng.random() < 0.5
        return others[int(rng.integers(len(others)))] if is_other else action


def critique(draft: str, action: str) -> str:
    """The critique of a draft, where another action may be meant.

    >>> critique("go north", "go north"), critique("go north", "take key")
    ('It is right.', 'Better: take key.')
    """
    return _RIGHT if draft == action else _BETTER.format(action)


def phrases(kinds: Sequence[str], action: str) -> list[str]:
    """The texts of these kinds of inner turns before an action, for a vocabulary."""
    texts = {"plan": [_PLAN.format(action)], "draft": [action], "critique": [_RIGHT, _BETTER.format(action)]}
    return [text for kind in kinds for text in texts.get(kind, ())]
