"""Scripted inner turns: texts of a demonstrator before an action that it is about to take.

    plan       the action
    draft      the action, or half of the time another admissible one
    critique   agreement with the draft, or the action in its place
    summary    some of what the environment has shown since the first observation, drawn at random, as much as fits;
               only what the prompt has: texts since the summary before, and those in it

A demonstration only shows the language of inner turns; what is useful in them is learnt from rewards.
"""

from collections.abc import Callable, Sequence

import numpy as np

from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import Answer

_PLAN, _RIGHT, _BETTER = "I will {}.", "It is right.", "Better: {}."


class InnerTexts:
    """Texts of one episode, by kind of inner turn; of a kind that is not listed above, the action."""

    def __init__(self, key: EpisodeKey):
        self._key, self._rngs = key, dict[str, np.random.Generator]()
        self._drafts, self._shown = dict[str, str](), dict[str, list[str]]()

    def of(self, kind: str, step: Answer, action: str, fits: Callable[[str], bool]) -> str:
        """The text of an inner turn.

        Args:
            action: that follows.
            fits: says whether a text is short enough.
        """
        if kind == "plan":
            return _PLAN.format(action)
        if kind == "draft":
            draft = self._drafts[step.role] = self._draft(step, action)
            return draft
        if kind == "critique":
            return critique(self._drafts.get(step.role, action), action)
        if kind == "summary":
            return self._summary(step.role, fits) or action
        return action

    def note(self, step: Answer) -> None:
        """Note what an agent has read before its action."""
        if step.role not in self._shown:
            self._shown[step.role] = []  # the first text is in every prompt
        elif step.observation not in self._shown[step.role]:
            self._shown[step.role].append(step.observation)

    def _summary(self, role: str, fits: Callable[[str], bool]) -> str:
        """The drawn texts, in the order in which they were seen; the others are forgotten."""
        texts, chosen = self._shown.get(role, []), list[int]()
        for number in self._rng(role).permutation(len(texts)).tolist():
            if fits(" ".join(texts[place] for place in sorted([*chosen, number]))):
                chosen.append(number)
        self._shown[role] = [texts[place] for place in sorted(chosen)]
        return " ".join(self._shown[role])

    def _rng(self, role: str) -> np.random.Generator:
        if role not in self._rngs:
            self._rngs[role] = generator("inner turns", *self._key, role)
        return self._rngs[role]

    def _draft(self, step: Answer, action: str) -> str:
        rng, others = self._rng(step.role), step.admissible or ()
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
