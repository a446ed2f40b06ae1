"""Anchor groups: the turns of one task in which the policy faced the same situation, across episodes and time.

Source: GiGPO, arXiv 2505.10978, section 4.2; similarity grouping from the authors' code (langfengQ/verl-agent,
``gigpo/core_gigpo.py::build_step_group``).
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, IntK


def equal_anchors(group_K: IntK, anchor_K: IntK) -> IntK:
    """Number (K) of each turn's anchor group, by first appearance: same task group, same anchor.

    >>> equal_anchors(np.array([0, 0, 1, 0]), np.array([5, 3, 5, 5]))
    array([0, 1, 2, 0])
    """
    _, g_K = np.unique(group_K, return_inverse=True)
    anchors, a_K = np.unique(anchor_K, return_inverse=True)
    _, first, pair_K = np.unique(g_K * len(anchors) + a_K, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[pair_K]


def similar_anchors(group_K: IntK, texts: Sequence[Any], threshold: float) -> IntK:
    """As ``equal_anchors``, with texts that need only be alike.

    Turns are taken in the order of the batch. Each joins the first anchor group of its task whose first member is
    alike, which is a difflib ratio of ``threshold`` or more, and otherwise starts one: the batch's order matters.
    Time grows with turns x groups x length^2; a text seen before costs nothing.

    >>> similar_anchors(np.array([0, 0, 0]), ["drawer 1 is shut", "you see a red hat", "drawer 2 is shut"], 0.9)
    array([0, 1, 0])
    """
    heads: dict[int, list[tuple[SequenceMatcher[str], int]]] = {}
    seen: dict[tuple[int, str], int] = {}
    clusters = 0
    cluster_K = np.empty(len(texts), np.int64)
    for k, (group, text) in enumerate(zip(group_K.tolist(), texts, strict=True)):
        if not isinstance(text, str):
            kind = "has no text" if text is None else f"is a {type(text).__name__}"
            raise ValueError(
                f"similarity compares texts, but the situation of turn {k} {kind}: have the environment give one, by "
                "anchor_text() or as info['anchor_text'], or leave similarity out"
            )
        if (group, text) not in seen:
            group_heads = heads.setdefault(group, [])
            cluster = next((number for head, number in group_heads if _alike(head, text, threshold)), None)
            if cluster is None:
                cluster, clusters = clusters, clusters + 1
                group_heads.append((SequenceMatcher(None, "", text), cluster))
            seen[group, text] = cluster
        cluster_K[k] = seen[group, text]
    return cluster_K


def _alike(head: SequenceMatcher[str], text: str, threshold: float) -> bool:
    head.set_seq1(text)  # what difflib prepares for the second text is kept from call to call
    bounds = (head.real_quick_ratio, head.quick_ratio, head.ratio)  # upper bounds first, then the ratio itself
    return all(bound() >= threshold for bound in bounds)


def anchor_diagnostics(cluster_K: IntK, counted_K: BoolK) -> dict[str, float]:
    """Share of the counted turns that are alone in their anchor group, and mean number of turns in an anchor group.

    >>> anchor_diagnostics(np.array([0, 1, 0, 2]), np.array([True, True, True, False]))
    {'singleton_anchors': 0.3333333333333333, 'mean_anchor_size': 1.5}
    """
    sizes = np.unique(cluster_K[counted_K], return_counts=True)[1]
    if not len(sizes):
        return {}
    return {"singleton_anchors": float((sizes == 1).sum() / sizes.sum()), "mean_anchor_size": float(sizes.mean())}
