"""A choice between ways of packing that differs from run to run, that overfills a pass, or that refuses a model."""

import numpy as np
import pytest
from learner_steps import learn, learner

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.passes.samples import Sample


def rows(alike: int, lengths: list[int]) -> list[Sample]:
    """Rows that begin with so many equal tokens and have nothing else in common."""
    rng = generator("auto", alike)
    begin, found = rng.integers(4, 200, alike), list[Sample]()
    for episode, length in enumerate(lengths):
        ids = np.concatenate([begin, rng.integers(4, 200, length)])
        said = np.arange(len(ids)) >= max(alike, 1)
        found.append(Sample(episode, ids, said, np.where(said, -5.0, 0.0), np.where(said, 0, -1)))
    return found


@pytest.mark.parametrize(("alike", "as_if"), [(0, "packed"), (18, "packed"), (30, "trie")])
def test_beginnings_are_shared_where_that_saves_a_tenth_of_the_tokens(alike, as_if):
    samples = rows(alike, [20, 4, 11] if alike > 18 else [300, 4, 11])
    found = {packing: learn(learner(packing=packing), samples) for packing in ("auto", "packed", "trie")}
    assert found["auto"] == found[as_if]
    assert found["packed"]["packing_ratio"] == 1.0 >= found["trie"]["packing_ratio"]


def test_a_pass_never_has_more_tokens_than_it_may():
    samples, passes = rows(18, [20, 24, 21, 22, 4, 80, 90]), list[int]()
    made = learner(packing="auto", micro_tokens=130)
    read = made.reader.read

    def counted(chosen):
        before = made.reader.computed
        reading = read(chosen)
        passes.append(made.reader.computed - before)
        return reading

    made.reader.read = counted
    learn(made, samples)
    assert len(passes) > 2 and max(passes) <= 130


def test_a_model_whose_tokens_cannot_be_packed_is_padded(monkeypatch):
    from learner_steps import model

    class Odd:
        def __call__(self, *given, **others):
            language = model(*given, **others)
            language.model.config._attn_implementation = "eager"
            return language

    monkeypatch.setattr("learner_steps.model", Odd())
    samples = rows(30, [20, 4, 11])
    told = learn(learner(packing="auto"), samples)
    assert told["packing_ratio"] > 1, "padding is computed too"
