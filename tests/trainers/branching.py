"""Samples of a step in every shape that begins alike: windows, branches, members of a group, two roles."""

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from hypothesis import strategies as st

from manyturn.agents.text.command_tree import tree_of
from manyturn.trainers.learn.passes.samples import Sample

Part = tuple[list[int], int]  # tokens, and the turn that said them or -1


def sample_of(episode: int, parts: list[Part], turns: int) -> Sample:
    reply = np.concatenate([np.full(len(ids), turn) for ids, turn in parts])
    ids = np.concatenate([np.array(ids, np.int64) for ids, _ in parts])
    return Sample(episode, ids, reply >= 0, np.where(reply >= 0, -5.5 + 1.5 * (ids % 2), 0.0), reply, turns)


def listing(sample: Sample) -> Sample:
    """The same, with each reply of several tokens chosen among four, one of which begins like it."""
    commands = {}
    for start in np.flatnonzero((sample.reply >= 0) & (np.diff(sample.reply, prepend=-1) != 0)).tolist():
        ids = sample.ids[start:][sample.reply[start:] == sample.reply[start]].tolist()
        commands[start] = tree_of((tuple(ids), (*ids[:-1], 3), (7, 3), (7, 8, 3)))
    return replace(sample, commands=commands, engine_logprob=np.where(sample.reply_mask, -0.5, 0.0))


@st.composite
def steps(draw: Any, most: int = 4) -> list[Sample]:
    """The samples of a step of one to ``most`` episodes.

    Few different tokens and short replies: that samples part late, say the same, or are the beginning of another is
    then common. Instructions are long enough to be shared wherever they are the same.
    """
    tokens = st.integers(4, 6)
    roles = [draw(st.lists(st.integers(4, 40), min_size=n, max_size=n)) for n in (18, 3)]
    samples = list[Sample]()
    for episode in range(draw(st.integers(1, most))):
        begin: list[Part] = [(roles[draw(st.integers(0, 1))], -1)]
        count = draw(st.integers(1, 4))
        turns = [
            [(draw(st.lists(tokens, min_size=1, max_size=4)), -1), (draw(st.lists(tokens, min_size=1, max_size=3)), k)]
            for k in range(count)
        ]
        kind = draw(st.sampled_from(["whole", "window", "history", "branches", "roles"]))
        match kind:
            case "whole":
                samples.append(sample_of(episode, [*begin, *chain(*turns)], count))
            case "branches":
                cut = draw(st.integers(0, count - 1))
                heard = [(ids, -1) for ids, _ in chain(*turns[:cut])]
                samples.append(sample_of(episode, [*begin, *chain(*turns[: cut + 1])], count))
                samples += [sample_of(episode, [*begin, *heard, *turn], count) for turn in turns[cut + 1 :]]
            case "roles":  # they speak in turn, and each hears the other
                for role in range(min(2, count)):
                    said = [(ids, k if k % 2 == role else -1) for ids, k in chain(*turns)]
                    samples.append(sample_of(episode, [(roles[role], -1), *said], count))
            case _:
                for k in range(count):
                    first = max(0, k - 1) if kind == "window" else 0
                    heard = [(ids, -1) for ids, _ in chain(*turns[first:k])]
                    samples.append(sample_of(episode, [*begin, *heard, *turns[k]], count))
    return samples
