"""How fast tokens are drawn on a GPU: our engine, the library's own ways, vLLM where it is; and with environments.

All answer the same requests: groups of eight with one prompt each, prompts of different lengths, replies of one length.
Prompts are read within the time. ``share`` is of the same requests by the library's padded ``generate``. Then episodes
of many turns are played in environments, and the same requests asked again without them: ``share`` is the part of the
engine's own speed that is left.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import rollout
import rollout_world
import torch
from gpu_device import Device
from gpu_items import Figures, Item, Kit
from gpu_shapes import SHAPES, random_language, random_model
from transformers import ContinuousBatchingConfig, GenerationConfig, PreTrainedModel

from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.play.vocabulary import texts_of
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.seats import InlineSeats

_GROUP = 8
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


LOADS = (Load("qwen2.5-0.5b", 128, 256, 768, 128), Load("qwen2.5-1.5b", 128, 256, 768, 128))
TOY = (Load("toy", 8, 5, 9, 4),)


def items(kit: Kit) -> list[Item]:
    found = list[Item]()
    for load in TOY if kit.toy else LOADS:
        ways: dict[str, Callable[[Device, Load], Figures]] = {
            "transformers, padded generate": generated,
            "manyturn, running batch": partial(ours, reproducible=False),
            "manyturn, rounds": partial(ours, reproducible=True),
            "transformers, continuous batching": continuous,
            "vllm": by_vllm,
        }
        found += [Item(f"{load.shape}: {way}", 75, partial(of, kit.device, load)) for way, of in ways.items()]
    shape, episodes = ("toy", 4) if kit.toy else ("qwen2.5-0.5b", 256)
    kinds = {"running batch": False, "rounds": True}
    return found + [
        Item(f"{shape}: environments, {kind}", 75, partial(attached, kit.device, shape, episodes, reproducible=bits))
        for kind, bits in kinds.items()
    ]


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
        await _asked(engine, load.requests(), 4, "warm")
        with device.timed() as took:
            await _asked(engine, load.requests(), load.reply, "timed")
        await engine.shutdown()
        return took[0]

    return _rates(load, asyncio.run(all_of_them()))


async def _asked(engine: Engine, prompts: list[list[int]], reply: int, stage: str) -> None:
    async def one(number: int, prompt: list[int]) -> None:
        key = EpisodeKey(0, stage, str(number), 0)
        engine.open(key)
        found = await engine.generate(key, 0, prompt, Sampling(max_tokens=reply))
        engine.close(key)
        if len(found.ids) != reply:
            raise RuntimeError(f"a reply of {len(found.ids)} tokens instead of {reply}")

    await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))


def generated(device: Device, load: Load) -> Figures:
    """All prompts in one batch, padded on the left."""
    model, prompts = _model(device, load), load.requests()
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts], device=device.torch)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device.torch)

    def draw(tokens: int) -> None:
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=mask,
                generation_config=GenerationConfig(max_new_tokens=tokens, do_sample=True, top_k=0, pad_token_id=0),
            )
        if found.shape[1] != width + tokens:
            raise RuntimeError(f"{found.shape[1] - width} tokens were drawn instead of {tokens}")

    draw(4)
    with device.timed() as took:
        draw(load.reply)
    return _rates(load, took[0])


def continuous(device: Device, load: Load) -> Figures:
    """The library's own continuous batching; left alone it would take most of the memory there is."""
    model, prompts = _model(device, load), load.requests()
    blocks = load.prompts * -(-(load.longest + load.reply) // _BLOCK)
    room = ContinuousBatchingConfig(page_size=_BLOCK, num_blocks=blocks, max_batch_tokens=_PASS)

    def draw(tokens: int) -> None:
        config = GenerationConfig(max_new_tokens=tokens, do_sample=True, top_k=0, eos_token_id=-1, pad_token_id=0)
        found = model.generate_batch(  # type: ignore[operator]
            inputs=prompts, generation_config=config, continuous_batching_config=room, progress_bar=False
        )
        lengths = {len(output.generated_tokens) for output in found.values()}
        if len(found) != len(prompts) or lengths != {tokens}:
            raise RuntimeError(f"{len(found)} of {len(prompts)} replies, of {sorted(lengths)} tokens")

    draw(4)
    with device.timed() as took:
        draw(load.reply)
    return _rates(load, took[0])


def by_vllm(device: Device, load: Load) -> Figures:
    """vLLM, if it is installed; otherwise the row says that it is not."""
    if find_spec("vllm") is None:
        return {"not measured": "vllm is not installed here"}
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as folder:
        config: Any = SHAPES[load.shape].config()
        config.architectures = ["Qwen2ForCausalLM"]
        config.save_pretrained(folder)
        llm = LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=load.longest + load.reply,
            gpu_memory_utilization=0.6,
            logprobs_mode="processed_logprobs",
        )
        prompts = [{"prompt_token_ids": prompt} for prompt in load.requests()]

        def draw(tokens: int) -> None:
            told = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False, logprobs=0)
            llm.generate(prompts, told, use_tqdm=False)

        draw(4)
        llm.reset_prefix_cache()
        with device.timed() as took:
            draw(load.reply)
    return _rates(load, took[0])


def attached(device: Device, shape: str, episodes: int, reproducible: bool) -> Figures:
    """Episodes with environments, against the engine alone on the same requests."""
    dtype = torch.bfloat16 if device.on_gpu else torch.float32
    texts = asyncio.run(texts_of(InlineSeats(rollout.ENV), rollout.AGENT, tasks=8, seed=0))
    made = random_language(shape, device.torch, texts, reply=12, dtype=dtype)
    size = rollout.Size(episodes, max(2, episodes // 2), (0, 0))
    config = TransformersConfig(reproducible=reproducible, max_batch=size.side_by_side)
    longest = rollout.AGENT.max_context
    engine = build_engine(config, EngineContext(made.model, made.template.end_ids, learns=False, max_context=longest))
    noting = rollout.Noting(engine)

    async def play() -> tuple[float, float]:
        few = rollout.Size(size.side_by_side // 2, size.side_by_side, size.shape)
        await rollout.attached(made, engine, few)
        played = await rollout.attached(made, noting, size)
        drawn = await rollout.replayed(engine, noting.noted, size.side_by_side, exact=False)
        await engine.shutdown()
        return played, drawn

    played, drawn = asyncio.run(play())
    turns = sum(map(len, noting.noted.values()))
    tokens = sum(len(reply.ids) for replies in noting.noted.values() for _, reply in replies)
    return {
        "episodes": episodes,
        "turns": turns,
        "most_turns": rollout_world.MOST,
        "drawn_tokens_per_s": tokens / played,
        "episodes_per_s": episodes / played,
        "share": drawn / played,
    }
