"""Reading of a step by the policy before its updates: once, for credit, heads and the update alike.

How a step reads. Its episodes become samples once. Whoever asks first for something of them, a column of credit, a head
or the update, starts the only pass of the policy over these samples; the pass keeps all that may be asked for:

    logprob, entropy      (T,) for each sample
    head_values(head)         the critic's value of each token, or the progress estimator's of each reply
    hidden(place)         hidden states, only at the places that a column's options name, on the CPU

``reference`` is one more pass, under the reference's weights, where the objective keeps one. If not asked for,
nothing is read: the engine's log-probabilities can do for the ratio (``learner.old_logprobs = "engine"``). The updates
close the reading, for the weights move: what was not asked before cannot be asked any more. Their own passes, with
gradient, are other passes: one for each minibatch.

Two methods ask about other tokens than those of the step, and no pass over the samples can answer them:

- IGPO's questions (``columns/belief.py``) end in the true answer, which was not said. They could stand in the same rows
  after what was said, but each row then needs a mask of its own, under which attention takes another kernel: the
  step's log-probabilities would move in their last digits, and no flash kernel could compute them on a GPU.
- SPO's drift (``columns/drift.py``) is about the previous episodes of the step's tasks: other rows altogether, for
  which ``of`` makes a reading of their own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, get_args

import numpy as np

from manyturn.trainers.learn.passes.forward import Place, Reader, Reading, Watch
from manyturn.trainers.learn.passes.samples import Rows, Sample, at_replies
from manyturn.trainers.learn.reading.reference_policy import ReadsReference


class StepReading:
    """A policy's reading of the samples of a step; no gradient. Every ``Rows`` has an entry for each sample.

    Args:
        samples: all branches of the step's episodes.
        heads: what the heads on the policy's hidden states say of a pass, by name.
        others: what the heads with bodies of their own say of samples, by name; a pass of their own.
        places: where hidden states are kept.
        reference: the reference policy, if the objective keeps one.
    """

    def __init__(
        self,
        reader: Reader,
        samples: Sequence[Sample],
        heads: Mapping[str, Watch] = {},
        places: Collection[Place] = (),
        reference: ReadsReference | None = None,
        others: Mapping[str, Callable[[Sequence[Sample]], Rows]] = {},
    ):
        self.reader, self.samples = reader, samples
        self._heads, self._places, self._reference = dict(heads), frozenset(places), reference
        self._others, self._other_rows = dict(others), dict[str, Rows]()
        self._closed = False

    @property
    def logprob(self) -> Rows:
        """(T,) log-probability of each token that was said, at the sampling temperature; 0 elsewhere."""
        return self._rows["logprob"]

    @property
    def entropy(self) -> Rows:
        """(T,) entropy in nats of the distribution that the token was drawn from, 0 where nothing was said."""
        return self._rows["entropy"]

    def head_values(self, head: str) -> Rows:
        """The output of a head: the critic's value before each token (T,), the progress estimator's one per reply."""
        if head in self._others:
            self._check_open(is_read=head in self._other_rows)
            if head not in self._other_rows:
                self._other_rows[head] = self._others[head](self.samples)
            return self._other_rows[head]
        if head not in self._heads:
            raise ValueError(f"there is no head {head!r}: add a section [{head}]")
        return self._rows[f"head {head}"]

    def hidden(self, place: Place) -> Rows:
        """(P, D) hidden states: of the tokens that were said, or at the ends of replies, of each sample."""
        if place not in self._places:
            raise ValueError(f"hidden states at {place!r} are not kept: name the place in a column's ``hidden``")
        return self._rows[f"hidden {place}"]

    @cached_property
    def reference(self) -> Rows | None:
        """(T,) log-probability under the reference policy; None without one."""
        if self._reference is None:
            return None
        self._check_open(is_read=False)
        return self._reference.over(self.reader, self.samples, {"logprob": watch_called("logprob")})["logprob"]

    @property
    def is_made(self) -> bool:
        """True if the policy has read the samples."""
        return "_rows" in vars(self)

    def at_replies(self, rows: Sequence[Any]) -> np.ndarray:
        """One (T,) row for each sample as an array over all tokens that were said, in the order of token columns."""
        return at_replies(self.samples, rows)

    def of(self, samples: Sequence[Sample]) -> "StepReading":
        """The same policy's reading of other samples; a pass of its own."""
        return StepReading(self.reader.keeping_nothing(), samples)

    def close(self) -> None:
        """The weights are about to move."""
        self._closed = True

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        names = ["logprob", "entropy", *(f"head {name}" for name in self._heads)]
        names += [f"hidden {place}" for place in self._places]
        return self._over({name: watch_called(name, self._heads) for name in names})

    def _over(self, watches: Mapping[str, Watch]) -> dict[str, Rows]:
        self._check_open(is_read=False)
        return self.reader.over(self.samples, watches)

    def _check_open(self, *, is_read: bool) -> None:
        if self._closed and not is_read:
            raise RuntimeError("the step's updates have begun: what is read before them must be asked before them")


def watch_called(name: str, heads: Mapping[str, Watch] = {}) -> Watch:
    """The watch of a name: "logprob", "entropy", "head NAME" or "hidden PLACE".

    Args:
        heads: what they say of a pass, by name.
    """
    what, _, of = name.partition(" ")
    if what == "head":
        return heads[of]
    if what == "hidden":
        [place] = (place for place in get_args(Place) if place == of)
        return partial(Reading.states, place=place)
    return attrgetter(what)
