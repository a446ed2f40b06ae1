"""Process of vLLM's own engine: start, requests, end. Only this file and ``choice_processor.py`` import vLLM."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from manyturn.agents.engine.card.vllm_share import PASS_TOKENS
from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.vllm.reply_request import PROCESSOR, Drawn, DrawRequest
from manyturn.agents.engine.vllm.worker import EXTENSION

if TYPE_CHECKING:
    from manyturn.agents.engine.card.card_plan import CardPlan
    from manyturn.agents.engine.vllm.options import VllmConfig

T = TypeVar("T")

_LOOK = 0.5  # seconds between two looks at whether vLLM is still there
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM has room for
_CPU_GIB = 1.0  # for keys and values


def engine_args(folder: Path, config: "VllmConfig", dtype: str, rank: int, plan: "CardPlan | None") -> dict[str, Any]:
    """Arguments of vLLM's ``AsyncEngineArgs``.

    vLLM's worker starts only where ``gpu_memory_utilization`` of the card is free, whatever the bytes of keys and
    values (``request_memory``, vllm/v1/worker/utils.py of 0.32). So both follow from the plan of the card.

    Args:
        folder: the model.
        rank: of adapters; 0 without.
        plan: of the GPU; None on a CPU.
    """
    cuda = plan is not None
    cache = plan.cache if plan is not None else (config.kv_gib or _CPU_GIB) * 2**30
    adapters = {"enable_lora": True, "max_loras": 1, "max_lora_rank": room_for(rank)} if rank else {}
    on_card = {"gpu_memory_utilization": plan.utilization, "max_num_batched_tokens": PASS_TOKENS} if plan else {}
    return {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "dtype": dtype,
        "max_model_len": -1,  # as long as there is room for keys and values
        "logprobs_mode": "processed_logprobs",
        "enable_prefix_caching": True,
        "kv_cache_memory_bytes": int(cache),
        "max_num_seqs": config.max_batch,
        "worker_extension_cls": EXTENSION,
        "logits_processors": [PROCESSOR],
        "generation_config": "vllm",
        "enforce_eager": not cuda,
        # The build for CPUs dies of a prompt that is read in pieces while others are drawn with seeds of their own.
        "enable_chunked_prefill": cuda,
        "enable_sleep_mode": cuda,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "seed": 0,  # of requests that have none
        **adapters,
        **on_card,
    }


class Process:
    """vLLM with one model, in processes of its own. Its methods raise whatever vLLM raises, and EngineError.

    Args:
        folder: the model.
        rank: of adapters; 0 without.
        plan: of the GPU that the model is on; None on a CPU.
    """

    def __init__(self, folder: Path, config: "VllmConfig", dtype: str, rank: int, plan: "CardPlan | None"):
        settle()
        from vllm.engine.arg_utils import AsyncEngineArgs  # pyright: ignore[reportMissingImports]
        from vllm.v1.engine.async_llm import AsyncLLM  # pyright: ignore[reportMissingImports]

        args = AsyncEngineArgs(**engine_args(folder, config, dtype, rank, plan))
        self._llm = AsyncLLM.from_engine_args(args)
        self._requests = 0

    @property
    def is_dead(self) -> bool:
        return self._llm.errored

    async def draw(self, request: DrawRequest) -> Drawn:
        """A reply; see ``Drawer``."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams  # pyright: ignore[reportMissingImports]

        self._requests += 1
        params = SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **request.sampling_params)
        prompt: Any = {"prompt_token_ids": list(request.prompt), "cache_salt": request.salt}
        adapters = _request(request.adapters)
        last = None
        async for output in self._llm.generate(prompt, params, f"{self._requests}", lora_request=adapters):
            last = output
        if last is None or not last.outputs or last.outputs[0].finish_reason not in ("stop", "length"):
            raise EngineError("vLLM broke the reply off")
        if list(last.prompt_token_ids) != prompt["prompt_token_ids"]:
            raise EngineError("vLLM computed another prompt than was sent, so its template is not ours")
        reply = last.outputs[0]
        logprobs = [float(step[token].logprob) for token, step in zip(reply.token_ids, reply.logprobs, strict=True)]
        return Drawn(list(reply.token_ids), logprobs, last.num_cached_tokens or 0)

    async def reload(self, file: Path) -> list[str]:
        """Load the weights of a file; returns the checksums of what each worker read."""
        return await self._call(self._llm.collective_rpc("load_checked", args=(str(file),)))

    async def take_adapters(self, adapters: Path, old: Path | None) -> None:
        """Draw with other adapters. Raises EngineError if vLLM does not take them."""
        request = _request(adapters)
        added = await self._call(self._llm.add_lora(request))
        if not added or request.lora_int_id not in await self._call(self._llm.list_loras()):
            raise EngineError(f"vLLM did not take the adapters of {adapters}")
        if old is not None:
            await self._call(self._llm.remove_lora(_request(old).lora_int_id))

    async def forget(self) -> None:
        """Break off what is being drawn, and forget keys and values."""
        await self._call(self._llm.pause_generation(mode="abort", clear_cache=True))
        await self._call(self._llm.resume_generation())

    async def sleep(self, *, keeps_weights: bool) -> None:
        """Give the device's memory back. Weights are kept in the host's memory, or must be loaded again."""
        await self._call(self._llm.sleep(level=1 if keeps_weights else 2))

    async def wake_weights(self) -> None:
        """Be ready for new weights, without room for keys and values."""
        await self._call(self._llm.wake_up(tags=["weights"]))

    async def wake(self) -> None:
        await self._call(self._llm.wake_up())

    async def _call(self, call: Coroutine[Any, Any, T]) -> T:
        """vLLM's answer. A call under which its process dies gets none, so the process is watched meanwhile."""
        task = asyncio.ensure_future(call)
        try:
            while not (await asyncio.wait([task], timeout=_LOOK))[0]:
                if self.is_dead:
                    raise EngineError("vLLM's process died")
            return task.result()
        finally:
            task.cancel()

    def end(self) -> None:
        self._llm.shutdown()


def _request(adapters: Path | None) -> Any:
    """vLLM's name for the adapters of a folder, whose own name ends in a number."""
    if adapters is None:
        return None
    from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]

    return LoRARequest(adapters.name, int(adapters.name.rpartition("-")[2]), str(adapters))


def room_for(rank: int) -> int:
    """The smallest room of vLLM's that holds adapters of this rank."""
    return next(room for room in _RANKS if room >= rank)


def settle() -> None:
    """Keep vLLM's log to errors, off the standard output, and its report on usage at home, unless they are set already.

    The first model runner is the CPU build's; ``choice_processor.py`` is written for it, and not for the second.
    """
    for name, value in (
        ("VLLM_LOGGING_LEVEL", "ERROR"),
        ("VLLM_LOGGING_STREAM", "ext://sys.stderr"),
        ("VLLM_NO_USAGE_STATS", "1"),
        ("VLLM_USE_V2_MODEL_RUNNER", "0"),
    ):
        os.environ.setdefault(name, value)
