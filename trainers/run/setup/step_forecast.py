"""Forecast of a step on a graphics card: seconds and memory, from operations that are counted without a card.

Unverified: no card was at hand. Counted are the learner's passes (``operation_count.py``), the tokens of a step, the
bytes of weights and of keys and values, and the operations that a decoding pass launches. Assumed are the shares of a
card's rates that real kernels reach, the seconds that Python takes for a launch, and the sizes of CUDA's contexts.

A pass takes as long as the slower of two: Python, which launches its operations one after the other, and the card, on
which each takes as long as its products or its bytes, whichever is more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedConfig

from manyturn.agents.engine.card.card_plan import CONTEXT
from manyturn.agents.engine.card.device_memory import cache_room
from manyturn.agents.engine.card.gpu_table import Gpu
from manyturn.agents.engine.card.vllm_share import vllm_plan
from manyturn.agents.engine.decoding.decoder import READ_EVERY
from manyturn.agents.engine.decoding.memory import cache_shape, kept_bytes
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.operation_count import Counts, PassCount, PassShape, count_pass, model_to_learn
from manyturn.trainers.recipe.config import RunConfig

PRODUCTS, MEMORY = 0.65, 0.75  # shares of the data sheet's rates that kernels reach
KERNEL = 3e-6  # seconds of the shortest kernel
LAUNCH = 10e-6  # seconds of Python and the driver for an operation
GRAPH_PASS = 1.5e-3  # seconds of a decoding pass of vLLM apart from the card's work
LAYER_LAUNCHES, ADAPTER_LAUNCHES, PASS_LAUNCHES = 39, 28, 47  # of a decoding pass of engine transformers; a test counts
BUS = 0.3  # share of the bus's rate that copies reach from and to memory that is not page-locked
FILE = 0.25e9  # bytes a second of weights on their way to vLLM: written, hashed twice, read
_SAFE = 0.9  # of the tokens that would fit by proportion
_KV_COPIES = 3  # that engine transformers makes of keys and values: gathered, written, read


@dataclass(frozen=True)
class StepEpisodes:
    """The episodes of a step.

    Attributes:
        count: of a step.
        turns: of an episode.
        prompt, reply: tokens of a turn, in the mean.
        distinct: share of the tokens of all rows that is left where common beginnings count once.
        is_whole: whether an episode is one row, as with the full conversation; else each turn is one.
        wait: seconds that an environment takes for a turn.
    """

    count: int
    turns: int
    prompt: int
    reply: int
    distinct: float
    is_whole: bool
    wait: float = 0.0

    @property
    def length(self) -> int:
        """Tokens of a row."""
        return (2 * self.prompt if self.is_whole else self.prompt) + self.reply

    @property
    def rows(self) -> int:
        return self.count * (1 if self.is_whole else self.turns)

    @property
    def nodes(self) -> float:
        """Distinct tokens of all rows."""
        return self.distinct * self.rows * self.length

    @property
    def drawn(self) -> int:
        """Tokens that are drawn."""
        return self.count * self.turns * self.reply


class ForecastPart(NamedTuple):
    """A part of a step: its seconds, and what limits it."""

    name: str
    seconds: float
    limit: str


class StepForecast(NamedTuple):
    """A step on a card.

    Attributes:
        parts: in their order.
        drawing, learning: bytes on the card.
        passing: those of ``learning`` that a pass of ``pass_tokens`` tokens holds.
        flops: operations that the model needs, recomputation apart.
    """

    parts: tuple[ForecastPart, ...]
    drawing: float
    learning: float
    passing: float
    pass_tokens: int
    flops: float

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    def fix(self, gpu: Gpu, learner: LearnerConfig, length: int) -> str | None:
        """Change with which it fits; None if it fits already.

        Args:
            length: tokens of a row, than which no pass is shorter.
        """
        if self.learning <= gpu.memory and self.drawing <= gpu.memory:
            return None
        fits = int((gpu.memory - self.learning + self.passing) / self.passing * _SAFE * self.pass_tokens)
        if self.drawing <= gpu.memory and fits >= length:
            return f"set learner.micro_tokens to {fits}"
        if self.drawing <= gpu.memory and learner.gradient_checkpointing is False:
            return "set learner.gradient_checkpointing to true"
        if self.drawing <= gpu.memory and learner.compile:
            return "leave learner.compile out, so that activations can be computed again"
        adapters = "" if learner.lora_rank else "set learner.lora_rank to 16, "
        return f"{adapters}lower agent.max_context, take a smaller model, or a larger card"


def step_forecast(
    config: RunConfig,
    model: PreTrainedConfig,
    gpu: Gpu,
    episodes: StepEpisodes,
    count: Counts = count_pass,
) -> StepForecast:
    """Seconds and memory of a step.

    Args:
        count: counts the operations of a pass, or has counted them before.

    Raises:
        ConfigError: learner and vLLM do not fit on the card.
    """
    context = _context(config, model)
    held = kept_bytes(context) + CONTEXT
    weights = 2.0 * sum(p.numel() for name, p in context.model.named_parameters() if ".lora_" not in name)
    token = cache_shape(model, torch.bfloat16).position_bytes
    awake, asleep = _engine_bytes(config, context, gpu, held, weights)
    shape = _pass_shape(config, episodes)
    passes = episodes.nodes / shape.nodes
    reading = count(model, shape, config.learner, learns=False)
    learning, again = _learning_pass(count, model, shape, config.learner, gpu.memory - held - asleep)
    readings = (config.learner.old_logprobs == "learner") + (config.objective.keeps_reference)
    parts = (
        _decoding(config, model, gpu, episodes, weights, token),
        *_environments(episodes),
        _prompts(gpu, episodes, weights, reading, shape),
        _weights(config, gpu, weights),
        ForecastPart(
            f"{readings} x log-probabilities", readings * passes * pass_seconds(reading, gpu), limit(reading, gpu)
        ),
        ForecastPart(
            f"updates{again}", config.learner.epochs * passes * pass_seconds(learning, gpu), limit(learning, gpu)
        ),
    )
    needed = passes * reading.flops * (readings + (2 if config.learner.lora_rank else 3) * config.learner.epochs)
    return StepForecast(
        parts,
        held + awake,
        held + asleep + learning.peak,
        learning.peak,
        shape.nodes,
        needed + episodes.drawn * weights,
    )


def _learning_pass(
    count: Counts, model: PreTrainedConfig, shape: PassShape, learner: LearnerConfig, room: float
) -> tuple[PassCount, str]:
    """The pass of an update, and words where it fits only with activations computed again, as a run decides.

    Args:
        room: bytes that a pass may take.
    """
    plain = count(model, shape, learner, learns=True)
    if plain.peak <= room or learner.gradient_checkpointing is not None or learner.compile:
        return plain, ""
    again = learner.model_copy(update={"gradient_checkpointing": True})
    return count(model, shape, again, learns=True), ", activations computed again"


def _context(config: RunConfig, model: PreTrainedConfig) -> EngineContext:
    return EngineContext(
        model_to_learn(model, config.learner),
        frozenset(),
        bool(config.learner.lora_rank),
        beside=config.learner.states_bytes,
        reference=config.objective.keeps_reference,
        moments=not config.learner.offload_optimizer,
        max_context=config.agent.max_context,
        own_weights=config.order.is_asynchronous,
    )


def _engine_bytes(
    config: RunConfig, context: EngineContext, gpu: Gpu, held: float, weights: float
) -> tuple[float, float]:
    """Bytes of the engine on the learner's card while episodes are played, and while the learner learns."""
    if isinstance(config.engine, VllmConfig):
        plan = vllm_plan(context, config.engine, gpu.memory)
        return plan.awake + CONTEXT, plan.asleep
    if config.engine.is_separate:  # servers of vLLM's, on other cards
        return 0.0, 0.0
    token = cache_shape(context.model.config, torch.bfloat16).position_bytes
    most = getattr(config.engine, "max_batch", 256) * context.max_context * token
    own = weights if _has_copy(config) else 0.0
    return own + min(most, cache_room(gpu.memory, held + own, on_gpu=True)), 0.0


def _has_copy(config: RunConfig) -> bool:
    """True if engine ``transformers`` draws with a copy of the weights."""
    return config.learner.weights == "float32" or config.order.is_asynchronous


def _pass_shape(config: RunConfig, episodes: StepEpisodes) -> PassShape:
    """A pass of the learner's budget whose rows share as much as those of the step."""
    length, budget = episodes.length, max(config.learner.micro_tokens, episodes.length)
    rows = max(1, round(budget / (episodes.distinct * length)))
    rows = max(1, min(rows, episodes.rows))
    nodes = min(budget, max(length, round(episodes.distinct * rows * length)))
    shared = 0 if rows == 1 else max(0, min(length - 1, (rows * length - nodes) // (rows - 1)))
    nodes = shared + rows * (length - shared)
    return PassShape(rows, length, shared, min(nodes, rows * max(1, episodes.drawn // episodes.rows)))


def pass_seconds(count: PassCount, gpu: Gpu) -> float:
    """Seconds of a pass: of Python or of the card, whichever is slower."""
    return max(count.launches * LAUNCH, count.total(lambda operation: max(_work(gpu)(operation), KERNEL)))


def limit(count: PassCount, gpu: Gpu) -> str:
    """The resource that a pass waits for most."""
    host = count.launches * LAUNCH
    flops = count.flops / (PRODUCTS * gpu.flops)
    moved = count.total(lambda operation: operation.moved if not operation.flops else 0.0) / (MEMORY * gpu.bandwidth)
    return max(("launches", host), ("products", flops), ("memory's bandwidth", moved), key=lambda pair: pair[1])[0]


def _work(gpu: Gpu) -> Callable[[Any], float]:
    products, memory = PRODUCTS * gpu.flops, MEMORY * gpu.bandwidth
    return lambda operation: max(operation.flops / products, operation.moved / memory)


def decoding_passes(config: RunConfig, episodes: StepEpisodes) -> float:
    """Passes until the longest episode has all its replies, whose lengths are geometric and limited.

    In rounds, each turn waits for its longest reply.
    """
    reply, most = episodes.reply, config.sampling.max_tokens
    if config.engine.capabilities.keeps_bits:
        harmonic = math.log(episodes.count) + 0.5772
        return episodes.turns * min(most, reply * harmonic)
    deviation = min(reply, most - reply) * math.sqrt(episodes.turns)
    longest = episodes.turns * reply + deviation * math.sqrt(2 * math.log(max(episodes.count, 2)))
    return min(longest, episodes.turns * most)


def _decoding(
    config: RunConfig, model: PreTrainedConfig, gpu: Gpu, episodes: StepEpisodes, weights: float, token: float
) -> ForecastPart:
    own = not config.engine.is_separate
    passes = decoding_passes(config, episodes) + own * episodes.turns * READ_EVERY / 2  # for which a prompt waits
    rows = episodes.drawn / passes
    cached = rows * episodes.length * token * (_KV_COPIES if own else 1)
    device = max((weights + cached) / (MEMORY * gpu.bandwidth), rows * weights / (PRODUCTS * gpu.flops))
    layers = model.get_text_config().num_hidden_layers
    apart = bool(config.learner.lora_rank) and own and not config.engine.merge_adapters
    launches = PASS_LAUNCHES + layers * (LAYER_LAUNCHES + apart * ADAPTER_LAUNCHES)
    recorded = max(device, launches * KERNEL if own else GRAPH_PASS)
    launched = max(device, launches * LAUNCH) if own else recorded  # passes that read prompts
    seconds = recorded + (launched - recorded) / READ_EVERY
    return ForecastPart(
        f"decoding, {passes:,.0f} passes", passes * seconds, "launches" if seconds > device else "memory's bandwidth"
    )


def _environments(episodes: StepEpisodes) -> tuple[ForecastPart, ...]:
    """The turns of an episode's environment, one after the other; those of other episodes pass at the same time."""
    if not episodes.wait:
        return ()
    return (ForecastPart("environments", episodes.turns * episodes.wait, "environments"),)


def _prompts(gpu: Gpu, episodes: StepEpisodes, weights: float, reading: PassCount, shape: PassShape) -> ForecastPart:
    new = max(0.0, episodes.nodes - episodes.drawn)
    return ForecastPart("reading prompts", new * weights / (PRODUCTS * gpu.flops), "products")


def _weights(config: RunConfig, gpu: Gpu, weights: float) -> ForecastPart:
    own = not config.engine.is_separate
    if own and not _has_copy(config):
        return ForecastPart("weights to the engine", 0.0, "nothing: it draws with the learner's")
    seconds = 3 * weights / (BUS * gpu.bus) if own else (0.1 if config.learner.lora_rank else weights / FILE)
    return ForecastPart("weights to the engine", seconds, "the bus" if own else "files and hashes")
