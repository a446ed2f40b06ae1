"""Plan of a card's memory: learner and engine at each moment of a run, in bytes.

    drawing    the learner's weights, gradients, moments and reference + its context + the engine awake
    learning   the same + a pass of the learner at its peak + its context + the engine asleep

Both sums must be at most the card's memory. The plan counts the most that the learner ever keeps, the optimiser's
moments included, so it holds before the warm-up, after it and after a restart of the engine. Weights, keys and values
follow from the model. ``CONTEXT``, ``GRAPHS`` and ``SPARE`` are assumptions: no card was at hand to measure them.
"""

import math
from typing import NamedTuple

from manyturn.agents.engine.card.device_memory import size
from manyturn.envs.contract.options.options import ConfigError

CONTEXT = 0.75 * 2**30  # bytes of a process on a card before its first tensor: CUDA's context, libraries, workspaces
GRAPHS = 1.25 * 2**30  # bytes of vLLM's CUDA graphs and of buffers that stay while it sleeps
SPARE = 0.02  # share of the card that is planned for nobody, since allocators leave gaps
_STEP = 1e-4  # of vLLM's share of the card


class CardModel(NamedTuple):
    """The sizes of a model that its memory on a card depends on.

    Attributes:
        weights: bytes of the engine's own copy.
        token: bytes of keys and values of one token.
        passing: bytes that a pass of the engine holds at its peak.
    """

    weights: float
    token: float
    passing: float


class CardPlan(NamedTuple):
    """Memory of a card that a learner shares with an engine in a process of its own.

    Attributes:
        total: bytes of the card.
        learner: bytes that the learner keeps from update to update, at most.
        model: the engine's.
        cache: bytes of the engine's keys and values.
    """

    total: float
    learner: float
    model: CardModel
    cache: float

    @property
    def awake(self) -> float:
        """Bytes of the engine while it draws, its context apart."""
        return self.model.weights + self.cache + self.model.passing + GRAPHS

    @property
    def asleep(self) -> float:
        """Bytes that the engine's process keeps while the learner learns."""
        return CONTEXT + GRAPHS

    @property
    def start_bytes(self) -> float:
        """Bytes that must be free when the engine's process starts."""
        return math.ceil(self.utilization * self.total) + CONTEXT

    @property
    def wake_bytes(self) -> float:
        """Bytes that must be free when the engine wakes."""
        return self.model.weights + self.cache + self.model.passing

    @property
    def utilization(self) -> float:
        """vLLM's ``gpu_memory_utilization``: its share of the card, which must be free when it starts."""
        return math.ceil(self.awake / self.total / _STEP) * _STEP

    @property
    def learning(self) -> float:
        """Bytes that are left for the learner's passes while the engine sleeps."""
        return (1 - SPARE) * self.total - self.learner - CONTEXT - self.asleep


def plan_card(
    total: float, learner: float, model: CardModel, episode_tokens: int, episodes: int, cache: float | None = None
) -> CardPlan:
    """The plan of a card.

    Args:
        total: bytes of the card.
        learner: bytes that the learner keeps at most, its context apart.
        episode_tokens: tokens of the longest prompt and reply together.
        episodes: how many of them the engine computes together.
        cache: bytes for keys and values; None: enough for all episodes, or what is left, whichever is less.

    Raises:
        ConfigError: learner and engine do not fit; it says what would.
    """
    left = (1 - SPARE) * total - learner - 2 * CONTEXT - GRAPHS - model.weights - model.passing
    longest = episode_tokens * model.token
    smaller = (
        "set learner.lora_rank to 16, take a smaller model, or draw on another card with engine.name = 'vllm-server'"
    )
    if left < longest:
        needed = total - left + longest
        if left >= 1024 * model.token:
            smaller = f"lower agent.max_context to {int(left // model.token)}, or {smaller}"
        raise ConfigError(
            f"learner and engine take {size(needed)} of the card while episodes are played: {size(learner)} for the "
            f"learner, {size(model.weights)} for the engine's weights, {size(longest)} for the keys and values of one "
            f"episode, and the card has {size(total)}: {smaller}"
        )
    if cache is not None and cache > left:
        raise ConfigError(
            f"engine.kv_gib = {cache / 2**30:g} does not fit on the card next to {size(learner)} of the learner: set "
            f"it to at most {math.floor(left / 2**30 * 100) / 100:g}, or leave it out"
        )
    if cache is not None and cache < longest:
        raise ConfigError(
            f"engine.kv_gib = {cache / 2**30:g} does not hold an episode of agent.max_context = {episode_tokens}: set "
            f"it to at least {math.ceil(longest / 2**30 * 100) / 100:g}, or leave it out"
        )
    return CardPlan(total, learner, model, min(episodes * longest, left) if cache is None else cache)
