"""An engine in which one thing is wrong, as it is in engines that are programs of their own.

It draws token by token with a copy of the model. A prefix cache of its own holds keys and values of the first tokens of
prompts that it has seen.
"""

import copy
from typing import Any, Literal

import torch
from peft import PeftModel, set_peft_model_state_dict

from manyturn.agents.engine.engine import Capabilities, Engine, Reply
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext
from manyturn.envs.contract.random_keys import generator

_PREFIX = 8  # tokens of a prompt that the cache holds


class FaultyConfig(EngineConfig):
    name: Literal["faulty"] = "faulty"
    fault: Literal["none", "temperature", "stale_prefix", "no_adapters", "no_weights", "beginning", "rounding"] = "none"
    """What is wrong."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(lora=True, own_weights=True)


class FaultyEngine(Engine):
    def __init__(self, context: EngineContext, config: FaultyConfig):
        self.model: Any = copy.deepcopy(context.model)
        self.version, self.vocabulary, self.capabilities = 0, self.model.config.vocab_size, config.capabilities
        self.fault, self.ends, self.cache = config.fault, context.end_ids, dict[tuple[int, ...], Any]()
        if self.fault == "rounding":
            self.precision = "bfloat16"

    async def generate(self, key, turn, prompt_ids, sampling):
        prompt = [min(self.ends), *prompt_ids] if self.fault == "beginning" else list(prompt_ids)
        temperature = 1.0 if self.fault == "temperature" else sampling.temperature
        noise, ids, logprobs = generator(key.noise_seed(turn)).random(sampling.max_tokens), [], []
        while len(ids) < sampling.max_tokens and not self.ends & set(ids[-1:]):
            logprobs_V = torch.log_softmax(self.logits([*prompt, *ids]).float() / temperature, -1)
            mass_V = logprobs_V.exp().double().cumsum(0)
            ids.append(int((mass_V <= noise[len(ids)] * mass_V[-1]).sum()))
            logprobs.append(float(logprobs_V[ids[-1]]))
        return Reply(ids, logprobs, "stop" if ids[-1] in self.ends else "length", self.version)

    @torch.no_grad()
    def logits(self, ids):
        first, rest = tuple(ids[:_PREFIX]), ids[_PREFIX:]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.fault == "rounding"):
            if first not in self.cache:
                self.cache[first] = self.model(input_ids=torch.tensor([first]), use_cache=True).past_key_values
            past = copy.deepcopy(self.cache[first])
            return self.model(input_ids=torch.tensor([rest]), past_key_values=past).logits[0, -1]

    async def load(self, weights, version):
        self.version = version
        if self.fault != "stale_prefix":
            self.cache.clear()
        tensors = {name: tensor.clone() for name, tensor in weights.tensors()}
        if isinstance(self.model, PeftModel):
            if self.fault != "no_adapters":
                set_peft_model_state_dict(self.model, tensors)
        elif self.fault != "no_weights":
            self.model.load_state_dict(tensors, strict=False)


@ENGINES.register(FaultyConfig)
def faulty(context: EngineContext, config: FaultyConfig) -> Engine:
    return FaultyEngine(context, config)
