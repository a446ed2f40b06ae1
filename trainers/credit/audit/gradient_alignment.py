"""Alignment: the cosine of the update that credit implies with the exact policy gradient, for a tabular policy.

The policy is a table of logits over situations x and actions a. With d log pi(a|x) / d logits(x, .) = e_a - pi(.|x) the
credit A of a group's K turns implies the update

    g = sum_k A_k (e_(x_k, a_k) - sum_a pi(a|x_k) e_(x_k, a))

and the exact gradient over the situations that the group visited has every action in place of the one that was taken:

    g* = sum_k sum_a pi(a|s_k) (Q(s_k, a) - V(s_k)) e_(x_k, a)

Continuations begin with an action drawn from the policy, so their first actions and returns estimate pi, Q and V at
once. A correlation does not see errors that cancel in a sum over turns; this does.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.correlation import Estimate, jackknife
from manyturn.trainers.credit.batch.turn_batch import FloatK

Update = dict[tuple[Hashable, str], float]


class FirstActions(NamedTuple):
    """Actions of a group, and what continuations of its situations did instead.

    Attributes:
        situations: of each of K turns, the row of the table.
        actions: of each turn, the action that was taken.
        firsts: of each turn, the first actions of the continuations from before it.
        returns: of each turn, the returns of these continuations.
    """

    situations: Sequence[Hashable]
    actions: Sequence[str]
    firsts: Sequence[Sequence[str]]
    returns: Sequence[np.ndarray]


def exact_gradient(choices: FirstActions) -> Update:
    """g*, by situation and action.

    >>> even = FirstActions(["hall"], ["go"], [["go", "stay"]], [np.array([1.0, 0.0])])
    >>> exact_gradient(even)
    {('hall', 'go'): 0.25, ('hall', 'stay'): -0.25}
    """
    table: Update = defaultdict(float)
    for situation, firsts, returns in zip(choices.situations, choices.firsts, choices.returns, strict=True):
        shares = (returns - returns.mean()) / len(returns)
        for action, share in zip(firsts, shares, strict=True):
            table[situation, action] += float(share)
    return dict(table)


def gradient_reliability(choices_N: Sequence[FirstActions]) -> float:
    """Share of the exact gradient that is no noise: the mean cosine c of its halves, by every other continuation, as
    2 c / (1 + c) for all of them (Spearman 1910; Brown 1910). Cosines with it are lower by about the root of this.

    >>> sure = FirstActions(["hall"], ["go"], [["go", "stay"] * 4], [np.array([1.0, 0.0] * 4)])
    >>> round(gradient_reliability([sure]), 6)
    1.0
    """
    cosines = []
    for choices in choices_N:
        # Pairs of continuations stay together, so that both halves have both members of what is drawn in turn.
        halves = [exact_gradient(_part(choices, part)) for part in (0, 1)]
        if all(max(map(abs, half.values()), default=0.0) > 1e-12 for half in halves):
            cosines.append(cosine(*halves))
    mean = float(np.mean(cosines)) if cosines else math.nan
    return max(0.0, 2 * mean / (1 + mean)) if cosines else math.nan


def _part(choices: FirstActions, part: int) -> FirstActions:
    places = [np.flatnonzero(np.arange(len(one)) // 2 % 2 == part) for one in choices.returns]
    firsts = [[one[place] for place in some.tolist()] for one, some in zip(choices.firsts, places, strict=True)]
    returns = [one[some] for one, some in zip(choices.returns, places, strict=True)]
    return choices._replace(firsts=firsts, returns=returns)


def implied_update(choices: FirstActions, credit_K: FloatK) -> Update:
    """g, by situation and action.

    >>> even = FirstActions(["hall"], ["go"], [["go", "stay"]], [np.array([1.0, 0.0])])
    >>> implied_update(even, np.array([2.0]))
    {('hall', 'go'): 1.0, ('hall', 'stay'): -1.0}
    """
    table: Update = defaultdict(float)
    credit_at: dict[Hashable, float] = defaultdict(float)
    drawn: dict[Hashable, list[str]] = defaultdict(list)
    for k, situation in enumerate(choices.situations):
        table[situation, choices.actions[k]] += float(credit_K[k])
        credit_at[situation] += float(credit_K[k])
        drawn[situation] += choices.firsts[k]
    for situation, credit in credit_at.items():
        for action in drawn[situation]:
            table[situation, action] -= credit / len(drawn[situation])
    return dict(table)


def cosine(a: Update, b: Update) -> float:
    """Cosine of two updates; 0 where one of them is nothing."""
    scale = math.sqrt(sum(value**2 for value in a.values()) * sum(value**2 for value in b.values()))
    return sum(value * b.get(key, 0.0) for key, value in a.items()) / scale if scale > 1e-300 else 0.0


class Alignment(NamedTuple):
    """Mean cosine over groups with its interval over tasks, and its standard deviation over groups."""

    mean: float
    low: float
    high: float
    spread: float


def alignment(choices_N: Sequence[FirstActions], credit_N: Sequence[FloatK], exact_N: Sequence[Update]) -> Alignment:
    """Alignment of a method's credit over N groups; groups in which no action changes anything are left out."""
    counted = [n for n, exact in enumerate(exact_N) if max(map(abs, exact.values()), default=0.0) > 1e-12]
    cosines = np.array([cosine(implied_update(choices_N[n], credit_N[n]), exact_N[n]) for n in counted])
    if not len(cosines):
        return Alignment(math.nan, math.nan, math.nan, math.nan)
    mean = float(cosines.mean())
    less = (cosines.sum() - cosines) / max(1, len(cosines) - 1)
    low, high = Estimate(mean, *jackknife(mean, less))[1:]
    return Alignment(mean, low, high, float(cosines.std(ddof=1)) if len(cosines) > 1 else math.nan)
