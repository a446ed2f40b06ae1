"""Sequences that a policy imitates: the replies of demonstrations, or the expert's labels of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.ledger import ON_PURPOSE, Label, Ledger
from manyturn.trainers.learn.passes.samples import Sample, samples_of


def imitation_samples(episodes: Sequence[Episode], *, observed: bool = False, among_all: bool = False) -> list[Sample]:
    """The sequences of E episodes with the tokens to imitate as those that were said.

    A turn is imitated as it was played, unless its reply was wrong on purpose or the expert's label is another one.
    Such a turn counts as read, and its label is a sequence of its own, after the turn's prompt. Sequences that share a
    prompt share its computation (``learner.packing``).

    Args:
        observed: also learn from observations, so that a sequence without any reply to imitate stays.
        among_all: have each token learnt among all of the vocabulary, where it was limited too.
    """
    samples = _samples(episodes, observed=observed)
    return [replace(sample, allowed={}) for sample in samples] if among_all else samples


def _samples(episodes: Sequence[Episode], *, observed: bool) -> list[Sample]:
    samples = []
    for sample in samples_of(episodes):
        ledger = _ledger(episodes[sample.episode])
        other = np.array([_is_other(ledger, turn) for turn in range(len(ledger.spans))], bool)
        reply_mask = sample.reply_mask & ~other[sample.reply]  # where nothing was said the index is idle
        if reply_mask.any() or (observed and (sample.reply < 0).any()):
            samples.append(replace(sample, reply_mask=reply_mask) if other.any() else sample)
    labelled = [(number, turn) for number, episode in enumerate(episodes) for turn in _ledger(episode).labels]
    return samples + [_labelled(number, _ledger(episodes[number]), turn) for number, turn in labelled]


def wrong_on_purpose(episode: Episode) -> list[bool]:
    """True for each turn with a reply that is wrong on purpose."""
    if episode.ledger is None:
        return [False] * len(episode.turns)
    return [span.version == ON_PURPOSE for span in episode.ledger.spans[: len(episode.turns)]]


def _ledger(episode: Episode) -> Ledger:
    assert episode.ledger is not None, "demonstrations are recorded as tokens"
    return episode.ledger


def _is_other(ledger: Ledger, turn: int) -> bool:
    return ledger.spans[turn].version == ON_PURPOSE or turn in ledger.labels


def _labelled(episode: int, ledger: Ledger, turn: int) -> Sample:
    """A turn's prompt and its label."""
    label: Label = ledger.labels[turn]
    prompt = ledger.prompt(turn)
    ids = np.array([*prompt, *label.ids])
    # All of it belongs to the turn: the prompt is observed where it was read, and weighs nothing here.
    return Sample(
        episode,
        ids,
        np.arange(len(ids)) >= len(prompt),
        np.zeros(len(ids)),
        np.full(len(ids), turn),
        len(ledger.spans),
        dict(enumerate(label.allowed, len(prompt))),
    )
