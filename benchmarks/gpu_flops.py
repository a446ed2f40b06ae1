"""How many operations a model needs for some rows of tokens, whoever computes them and however.

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

from transformers import PreTrainedConfig


def body_weights(config: PreTrainedConfig) -> int:
    """Numbers in the matrices of all decoder layers of a Llama or Qwen2."""
    size, heads = _head_size(config), config.num_attention_heads
    attention = config.hidden_size * size * (2 * heads + 2 * config.num_key_value_heads)
    return config.num_hidden_layers * (attention + 3 * config.hidden_size * config.intermediate_size)


def forward_flops(config: PreTrainedConfig, lengths: Iterable[int], said: int) -> float:
    """Operations of one forward pass.

    Args:
        lengths: tokens of each row.
        said: tokens of all rows whose probability is asked for.
    """
    linear, attention = _parts(config, list(lengths), said)
    return linear + attention


def update_flops(config: PreTrainedConfig, lengths: Iterable[int], said: int, adapters: bool = False) -> float:
    """Operations of a forward and a backward pass.

    Args:
        adapters: whether they alone are learnt: no gradient of a frozen weight is needed then, which leaves half of a
            linear layer's backward pass. The adapters themselves are so small that they are not counted.
    """
    linear, attention = _parts(config, list(lengths), said)
    return (2 if adapters else 3) * linear + 3 * attention


def _parts(config: PreTrainedConfig, lengths: list[int], said: int) -> tuple[float, float]:
    """Operations of a forward pass in linear layers, and in attention."""
    seen = sum(length * (length + 1) // 2 for length in lengths)
    attention = 4 * config.num_hidden_layers * config.num_attention_heads * _head_size(config) * seen
    linear = 2 * body_weights(config) * sum(lengths) + 2 * config.hidden_size * config.vocab_size * said
    return float(linear), float(attention)


def _head_size(config: PreTrainedConfig) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
