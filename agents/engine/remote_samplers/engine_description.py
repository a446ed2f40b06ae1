"""Description of an engine and its model by a driver, from which another process makes both.

A model is described by its configuration; the weights come later. What is built is a class of transformers that
the configuration names; a configuration that asks for code from elsewhere is refused.
"""

import json
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext, build_engine
from manyturn.agents.engine.remote_samplers.model_size_limit import built, check_parts

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_ATTENTION = "_attn_implementation"  # of a configuration
_ATTENTIONS = ("eager", "sdpa", "flash_attention_2", "flash_attention_3")  # others may be fetched and run
_TYPES = ("float32", "bfloat16", "float16")
_CODE = ("auto_map", "quantization_config", "trust_remote_code")


def description(context: EngineContext, config: EngineConfig, threads: int) -> dict[str, Any]:
    """Description from which another process builds the same engine: plain JSON values.

    Args:
        threads: CPU threads of the model; 0 for all.
    """
    model = context.model
    return {
        "engine": config.model_dump(mode="json", exclude_none=True),
        "model": json.loads(model.config.to_json_string(use_diff=False)),
        "attention": getattr(model.config, _ATTENTION),
        "dtype": str(model.dtype).removeprefix("torch."),
        "ends": sorted(context.end_ids),
        "max_context": context.max_context,
        "threads": threads,
    }


class Announced(BatchBarrier):
    """A barrier of an engine whose requests are announced: a round begins when all of those have come.

    Attributes:
        due: requests that were announced and have no reply yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.due = 0

    @property
    def all_asked(self) -> bool:
        return sum(member.asking for member in self.members) >= self.due


class DescribedEngine:
    """The engine of a description, and the model that it was made for.

    Args:
        plain: a ``description``.
        device: of the model.
        ended: set by another thread that wants neither any more.

    Attributes:
        in_rounds: whether its requests have to be announced to ``barrier``.

    Raises:
        ValueError: it is none, may not be built here, or takes more memory than is free.
        BuildEnded: nobody wants it any more.
    """

    def __init__(self, plain: Mapping[str, Any], device: "torch.device", ended: threading.Event):
        config = ENGINES.parse(plain["engine"])
        if not isinstance(config, EngineConfig) or config.name == "vllm-server":
            raise ValueError(
                f"a sampler cannot be engine {plain['engine'].get('name')!r:.40}: take transformers or vllm"
            )
        self.barrier, self.in_rounds = Announced(), config.capabilities.keeps_bits
        self.model = _model_of(plain, device, ended)
        ends, most = frozenset(map(int, plain["ends"])), int(plain["max_context"])
        context = EngineContext(self.model, ends, learns=False, max_context=most, barrier=self.barrier)
        self.engine: Engine = build_engine(config, context)


def _model_of(described: Mapping[str, Any], device: "torch.device", ended: threading.Event) -> "PreTrainedModel":
    """The model, with weights that mean nothing. Raises ValueError for one that is not to be built."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from manyturn.agents.model.model_internals import move

    plain = dict(described["model"])
    if odd := [word for word in _CODE if plain.get(word) is not None]:
        raise ValueError(f"the model asks for {odd[0]}, which a sampler does not take: give a model without it")
    if described["attention"] not in _ATTENTIONS or described["dtype"] not in _TYPES:
        raise ValueError(
            f"a sampler does not compute with {described['attention']!r:.40} in {described['dtype']!r:.40}"
        )
    check_parts(plain)
    config = AutoConfig.for_model(plain.pop("model_type"), **plain)
    make = partial(
        AutoModelForCausalLM.from_config,
        config,
        trust_remote_code=False,
        dtype=getattr(torch, described["dtype"]),
        attn_implementation=described["attention"],
    )
    model = cast("PreTrainedModel", built(make, device, ended))
    move(model, device)
    return model.eval()
