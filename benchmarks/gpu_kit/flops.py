"""Operations that a model needs for some rows of tokens, whoever computes them and however.

A product of matrices takes two operations for each of its multiplications. Weights of linear layers are used once for
each token, so a token takes twice their number; the embedding is looked up, and takes none. A token at place t attends
to t + 1 tokens: twice (scores and values) two operations for each number of each query head. The output head counts
where something was said, since nowhere else is it needed. A backward pass takes twice its forward pass. What is
computed a second time to save memory does not count: utilisation is of what the model needs.

Sources: Kaplan et al., arXiv 2001.08361, section 2.1 (parameters and attention); PaLM, arXiv 2204.02311, appendix B
(model FLOPs utilisation, backward as two forwards, no recomputation). PaLM counts attention to all tokens; we count
what a causal mask leaves, which is less.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedConfig


def body_weights(config: PreTrainedConfig) -> int:
    """Numbers in the matrices of all decoder layers of a Llama or Qwen2."""
    size, heads = _head_size(config), config.num_attention_heads
    attention = config.hidden_size * size * (2 * heads + 2 * config.num_key_value_heads)
    return config.num_hidden_layers * (attention + 3 * config.hidden_size * config.intermediate_size)


class Operations(NamedTuple):
    """Floating-point operations of a forward pass.

    Attributes:
        linear: in products with weights.
        attention: in scores and values.
    """

    linear: float
    attention: float

    @property
    def forward(self) -> float:
        return self.linear + self.attention

    def update(self, adapters: bool) -> float:
        """Operations of a forward and a backward pass.

        Args:
            adapters: whether only they are learnt: no gradient of a frozen weight is needed then, which leaves half of
                a linear layer's backward pass. The adapters themselves are so small that they are not counted.
        """
        return (2 if adapters else 3) * self.linear + 3 * self.attention


def of_rows(config: PreTrainedConfig, lengths: Iterable[int], replies: int) -> Operations:
    """A forward pass in which each row is computed by itself.

    Args:
        lengths: tokens of each row.
        replies: tokens of all rows whose probability is computed.
    """
    lengths = list(lengths)
    return _of(config, sum(lengths), replies, sum(length * (length + 1) // 2 for length in lengths))


def of_tree(config: PreTrainedConfig, depths: np.ndarray, replies: int) -> Operations:
    """A forward pass over a tree of tokens, in which what rows begin with alike is there once.

    Args:
        depths: (N,) number of tokens before each node.
    """
    return _of(config, len(depths), replies, int((depths.astype(np.int64) + 1).sum()))


def _of(config: PreTrainedConfig, tokens: int, replies: int, seen: int) -> Operations:
    """As ``of_rows``, of so many pairs of a token and one that it attends to."""
    linear = 2 * body_weights(config) * tokens + 2 * config.hidden_size * config.vocab_size * replies
    return Operations(float(linear), float(_attention(config) * seen))


def _attention(config: PreTrainedConfig) -> int:
    """Operations of a token that looks at one token, in all layers."""
    return 4 * config.num_hidden_layers * config.num_attention_heads * _head_size(config)


def _head_size(config: PreTrainedConfig) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
