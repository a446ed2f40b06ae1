"""Belief of the policy: how likely it is to give the true answer, measured before each of its replies.

    p = exp(mean over the answer's tokens of log pi(token | what the policy sees, the reply up to there))

The reply that gives the answer is forced, in the agent's reply format and at the sampling temperature; tokens of the
format around the answer are not counted. Source: Information Gain-based Policy Optimization, arXiv 2510.14967, and the
authors' code (GuoqingWang1/IGPO, ``scrl/llm_agent/generation.py``), which forces a fixed closing phrase where the
reply format stands here.

All questions of a branch are one row: its tokens, and after them the forced reply once for each prompt, which sees
that prompt and itself alone. Asking costs about one forward pass over the episodes, without gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import output_head
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.tokens.ledger import Ledger
from manyturn.trainers.learn.passes.forward import precision
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import micro_batches, padded

_MARK = "\u241e"  # a rare character that stands for the answer while the reply format is taken apart
_BRANCH, _PADDING = -1, -2  # blocks that are no question's


@dataclass(frozen=True)
class Forced:
    """The reply that gives the answer.

    Attributes:
        ids: (A,) its tokens up to the answer's last.
        counted: (A,) whether a token is one of the answer's.
        tokens: of the full reply, its end token included.
    """

    ids: np.ndarray
    counted: np.ndarray
    tokens: int

    @classmethod
    def of(cls, answer: str, config: AgentConfig, template: ChatTemplate) -> Self:
        """From the action that gives the answer; raises ValueError if there is nothing to say."""
        before, _, after = config.reply_format.render(_MARK).partition(_MARK)
        text = template.content(answer)
        read = template.tokenizer(before + text + after, add_special_tokens=False, return_offsets_mapping=True)
        first, last = len(before), len(before) + len(text)
        counted = np.array([begin < last and end > first for begin, end in read["offset_mapping"]], bool)
        if not counted.any():
            raise ValueError(f"the environment's answer() is {answer!r}, which has no token: return None if unknown")
        length = int(np.flatnonzero(counted)[-1]) + 1
        return cls(np.array(read["input_ids"][:length]), counted[:length], len(counted) + 1)


@dataclass(frozen=True)
class Questions:
    """Q questions to one branch, as a row of L tokens.

    Attributes:
        turns: (Q,) the turns before whose replies is asked.
        ids: (L,) tokens.
        position: (L,) their positions in the sequence that they belong to.
        block: (L,) question that the token belongs to, -1 in the branch.
        limit: (L,) length of the branch that the token sees.
        source: (Q, A) place in the row out of which each forced token is predicted.
        forced: the reply.
    """

    turns: np.ndarray
    ids: np.ndarray
    position: np.ndarray
    block: np.ndarray
    limit: np.ndarray
    source: np.ndarray
    forced: Forced

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, ledger: Ledger, branch: int, forced: Forced) -> Self:
        """Before each reply in a branch of a ledger."""
        turns = np.array([turn for turn, span in enumerate(ledger.spans) if span.branch == branch])
        start_Q = np.array([ledger.spans[turn].start for turn in turns])
        T, Q, size = int(start_Q.max()), len(turns), len(forced.ids) - 1  # the last token need not be read
        places, steps = np.arange(T), np.arange(size)
        behind = T + size * np.arange(Q)[:, None] + steps  # (Q, size) places of the blocks
        return cls(
            turns=turns,
            ids=np.concatenate([ledger.branches[branch].ids[:T], np.tile(forced.ids[:-1], Q)]).astype(np.int64),
            position=np.concatenate([places, (start_Q[:, None] + steps).ravel()]),
            block=np.concatenate([np.full(T, _BRANCH), np.repeat(np.arange(Q), size)]),
            limit=np.concatenate([places + 1, np.repeat(start_Q, size)]),
            source=np.concatenate([start_Q[:, None] - 1, behind], axis=1),
            forced=forced,
        )


@torch.no_grad()
def believed(
    model: PreTrainedModel, rows: Sequence[Questions], temperature: float, budget: PassBudget
) -> list[np.ndarray]:
    """The probability p of the answer at each question: one array (Q,) for each row.

    Args:
        budget: of padded tokens in one pass.
    """
    beliefs: list[np.ndarray] = [np.empty(0)] * len(rows)
    for group in micro_batches(rows, budget.tokens):
        budget.passing(len(group), len(group) * max(len(rows[i]) for i in group))
        hidden = _hidden(model, [rows[i] for i in group])
        for states, i in zip(hidden, group, strict=True):
            forced = rows[i].forced
            places = torch.from_numpy(rows[i].source[:, forced.counted]).to(states.device)
            targets = torch.from_numpy(forced.ids[forced.counted]).to(states.device)
            with precision(model):
                logits = output_head(model)(states[places])
            scores = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature, -1)
            logprob_QA = scores.gather(-1, targets.expand(len(places), -1)[..., None])[..., 0]
            beliefs[i] = logprob_QA.double().mean(-1).exp().cpu().numpy()
    return beliefs


def _hidden(model: PreTrainedModel, rows: Sequence[Questions]) -> torch.Tensor:
    """Last hidden states (B, L, D) of rows, each token of which sees what comes before it in its own sequence."""

    def together(name: str, padding: int = 0) -> torch.Tensor:
        return padded([torch.from_numpy(getattr(row, name)) for row in rows], padding).to(model.device)

    position, block, limit = together("position"), together("block", _PADDING), together("limit")
    own = block[:, :, None] == block[:, None]
    seen = own | ((block[:, None] == _BRANCH) & (position[:, None] < limit[:, :, None]))
    sees = seen & (position[:, None] <= position[:, :, None])
    mask = torch.zeros(sees.shape, dtype=model.dtype, device=sees.device)
    mask.masked_fill_(~sees, torch.finfo(model.dtype).min)
    with precision(model):
        return model.get_decoder()(
            input_ids=together("ids"), position_ids=position, attention_mask=mask[:, None], use_cache=False
        ).last_hidden_state
