"""Speed of drawing tokens: our engine, next to the library's own ways of drawing.

All answer the same requests: groups of eight with one prompt each, prompts of different lengths, replies of one length.
Prompts are read within the time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, PreTrainedModel

from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.gpu_kit.random_models import SHAPES, random_model
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.tokens.episode_key import EpisodeKey

_GROUP = 8
# What versions of the library call the tokens of a block; 5.17 has the second name only.
_SIZE = next(name for name in ("page_size", "block_size") if name in {f.name for f in fields(ContinuousBatchingConfig)})
_BLOCK, _PASS = 256, 4096  # tokens of a block of the library's cache, and of a pass; the latter is ours too


@dataclass(frozen=True)
class Load:
    """Requests, and the model that answers.

    Attributes:
        prompts: how many there are, a multiple of eight.
        shortest, longest: tokens of a prompt.
        reply: tokens of a reply.
    """

    shape: str
    prompts: int
    shortest: int
    longest: int
    reply: int

    def requests(self) -> list[list[int]]:
        """Prompts; the members of a group have the same."""
        rng = np.random.default_rng(0)
        lengths = rng.integers(self.shortest, self.longest + 1, self.prompts // _GROUP)
        each = [rng.integers(0, SHAPES[self.shape].vocabulary, length).tolist() for length in lengths]
        return [prompt for prompt in each for _ in range(_GROUP)]


LOAD = Load("qwen2.5-1.5b", 128, 256, 768, 96)
TOY = Load("toy", 8, 5, 9, 4)


def cases(kit: Kit) -> list[Case]:
    load = TOY if kit.toy else LOAD
    ways: dict[str, Callable[[Device, Load], Figures]] = {
        "manyturn, running batch": partial(ours, reproducible=False),
        "transformers, padded generate": generated,
        "transformers, continuous batching": continuous,
        "manyturn, rounds": partial(ours, reproducible=True),
    }
    return [Case(way, partial(of, kit.device, load)) for way, of in ways.items()]


def _rates(load: Load, seconds: float) -> dict[str, float]:
    read = sum(len(prompt) for prompt in load.requests())
    return {
        "drawn_tokens_per_s": load.prompts * load.reply / seconds,
        "prompt_tokens": read,
        "seconds_of_all": seconds,
    }


def _model(device: Device, load: Load) -> PreTrainedModel:
    return random_model(load.shape, device.torch, torch.bfloat16 if device.on_gpu else torch.float32)


def ours(device: Device, load: Load, reproducible: bool) -> Figures:
    """The engine ``transformers``."""
    config = TransformersConfig(reproducible=reproducible, max_batch=load.prompts)
    longest = load.longest + load.reply
    engine = build_engine(config, EngineContext(_model(device, load), frozenset(), learns=False, max_context=longest))

    async def all_of_them() -> float:
        await _draw_all(engine, load.requests(), 4, "warm")
        with device.timed() as took:
            await _draw_all(engine, load.requests(), load.reply, "timed")
        await engine.shutdown()
        return took[0]

    return _rates(load, asyncio.run(all_of_them()))


async def _draw_all(engine: Engine, prompts: list[list[int]], reply: int, stage: str) -> None:
    async def one(number: int, prompt: list[int]) -> None:
        key = EpisodeKey(0, stage, str(number), 0)
        engine.open(key)
        draw = await engine.generate(key, 0, prompt, Sampling(max_tokens=reply))
        engine.close(key)
        if len(draw.ids) != reply:
            raise RuntimeError(f"a reply of {len(draw.ids)} tokens instead of {reply}")

    await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))


def generated(device: Device, load: Load) -> Figures:
    """All prompts in one batch, padded on the left."""
    model, prompts = _model(device, load), load.requests()
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts], device=device.torch)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device.torch)

    def draw(tokens: int) -> None:
        with torch.inference_mode():
            ids_BT = model.generate(
                ids,
                attention_mask=mask,
                generation_config=GenerationConfig(max_new_tokens=tokens, do_sample=True, top_k=0, pad_token_id=0),
            )
        if ids_BT.shape[1] != width + tokens:
            raise RuntimeError(f"{ids_BT.shape[1] - width} tokens were drawn instead of {tokens}")

    draw(4)
    with device.timed() as took:
        draw(load.reply)
    return _rates(load, took[0])


def continuous(device: Device, load: Load) -> Figures:
    """The library's own continuous batching; left alone it would take most of the memory there is."""
    model, prompts = _model(device, load), load.requests()
    blocks = load.prompts * -(-(load.longest + load.reply) // _BLOCK)
    room = ContinuousBatchingConfig(**{_SIZE: _BLOCK}, num_blocks=blocks, max_batch_tokens=_PASS)  # type: ignore[arg-type]

    def draw(tokens: int) -> None:
        config = GenerationConfig(max_new_tokens=tokens, do_sample=True, top_k=0, eos_token_id=-1, pad_token_id=0)
        outputs = model.generate_batch(  # type: ignore[operator]
            inputs=prompts, generation_config=config, continuous_batching_config=room, progress_bar=False
        )
        lengths = {len(output.generated_tokens) for output in outputs.values()}
        if len(outputs) != len(prompts) or lengths != {tokens}:
            raise RuntimeError(f"{len(outputs)} of {len(prompts)} replies, of {sorted(lengths)} tokens")

    draw(4)
    with device.timed() as took:
        draw(load.reply)
    return _rates(load, took[0])
