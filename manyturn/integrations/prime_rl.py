"""prime-rl, unverified: an ``Algorithm`` that gives each sampled token of a trace its credit.

A turn is a node of the trace with sampled tokens. What the environment knows of its turns is in the trace's ``info``:
``trace.info["credit"] = {"rewards": [0, 0, 1], "anchors": ["hall", "kitchen", "cellar"]}``, fields of ``Rollout``.
Without it the trace's reward is what its last turn earned.

Differences from a run of ours: prime-rl scores one task's episodes at a time, so that what is taken over a batch, such
as whitening or the mean entropy, is taken over a task. Traces of different agents of a task are not compared, and a
trace that ended in an error is none of the group's. Contract: its repository of 2026-08-21, ``orchestrator/algo``.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.options.registry import Memory
from manyturn.integrations.rollout_fields import with_same_parts
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import by_reply, learnt_mask
from manyturn.trainers.credit.external_rollouts import Rollout, batch_of
from manyturn.trainers.credit.pipeline import credit as credit_of

ALGORITHMS = "prime_rl.orchestrator.algo"
INFO = "credit"
FIELDS = {"rewards", "anchors", "anchor_texts", "format_valid", "understood", "truncated", "columns", "token_columns"}


def algorithm(credit: CreditConfig) -> type[Any]:
    """A subclass of prime-rl's ``Algorithm``, for ``ALGORITHM_CLASSES["grpo"]``, whose place it takes.

    Raises:
        ImportError: the installed prime-rl has no place for credit of tokens, or there is none.
        ValueError: a method does not fit.
    """
    if "value" in credit.needs:
        raise ValueError(f"{credit.needs['value']} learns a critic, and prime-rl has none: take another, such as gigpo")
    try:
        module, base = importlib.import_module(ALGORITHMS), importlib.import_module(f"{ALGORITHMS}.base")
        parent, assign, traces_of = module.Algorithm, module.assign_advantages, base.iter_trainable_traces
    except (ImportError, AttributeError) as problem:
        raise ImportError(f"this prime-rl has no place for credit of tokens: {problem}") from problem

    class CreditAlgorithm(parent):
        """Scores a task's episodes by ``credit``."""

        def __init__(self, config: Any, policy_pool: Any):
            super().__init__(config, policy_pool)
            self.credit_memory: Memory = {}

        async def score_group(self, episodes: list[Any]) -> None:
            traces = [trace for _, trace in traces_of(episodes)]
            if traces:
                values, self.credit_memory = token_credit(traces, credit, self.credit_memory)
                for trace, advantages in zip(traces, values, strict=True):
                    assign(trace, advantages)

    return CreditAlgorithm


def token_credit(traces: Sequence[Any], credit: CreditConfig, memory: Memory) -> tuple[list[list[float]], Memory]:
    """For each trace of one task the credit of its sampled tokens, in their order; and what the methods remember.

    Raises:
        ValueError: a trace does not fit, or a method lacks something.
    """
    earned = credit_of(batch_of(with_same_parts([trace_rollout(trace) for trace in traces])), credit, memory)
    learnt_E = learnt_mask(earned, np.ones((len(traces), 1), int))[:, 0]
    replies = by_reply(earned.advantage_T, earned.batch)
    values = [(np.concatenate(own) * learnt).tolist() for own, learnt in zip(replies, learnt_E.tolist(), strict=True)]
    return values, dict(earned.memory)


def trace_rollout(trace: Any) -> Rollout:
    """A trace as a rollout, whose group is its agent."""
    fields = dict(trace.info.get(INFO, {"rewards": trace.reward}))
    if unknown := sorted(fields.keys() - FIELDS):
        raise ValueError(f"trace.info['{INFO}'] has {unknown[0]!r}: there are {', '.join(sorted(FIELDS))}")
    tokens = [sum(node.mask) for node in trace.nodes if any(node.mask)]
    return Rollout(**{"group": trace.agent.name, "rewards": trace.reward, **fields, "tokens": tokens})
