"""An engine of your own: each request by itself, token by token, each by a pass over all there is.

    python examples/own_engine.py

It knows nothing of batches, caches, entropies or adapters, and keeps a copy of the weights, as an engine in another
process would. It writes down each reply that it gives. A package announces such a module as a plugin (docs/plugins.md),
and then ``manyturn train ENV --engine.name plain`` finds it.
"""

import asyncio
import copy
import json
from typing import Literal

from manyturn.agents.engine.engine import Engine, EngineError, Reply
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig
from manyturn.envs.contract.random_keys import generator


class PlainConfig(EngineConfig):
    name: Literal["plain"] = "plain"
    replies: str
    """File that gets a line for each reply."""


class PlainEngine(Engine):
    def __init__(self, context, config):
        self.version, self.capabilities = 0, config.capabilities
        self.model, self.ends, self.file = copy.deepcopy(context.model), context.end_ids, config.replies
        self.vocabulary = self.model.config.vocab_size
        self.drawn, self.awake, self.whole = 0, True, True

    async def generate(self, key, turn, prompt_ids, sampling):
        if not (self.awake and self.whole):
            raise EngineError("asleep, or left with half the weights of a load that failed")
        ids, logprobs, version = [], [], self.version
        noise = generator(key.noise_seed(turn)).random(sampling.max_tokens)
        while len(ids) < sampling.max_tokens and not self.ends & set(ids[-1:]):
            logprobs_V = self.logprobs([*prompt_ids, *ids], sampling.temperature or 1.0)
            mass_V = logprobs_V.exp().double().cumsum(0)
            drawn = int((mass_V <= noise[len(ids)] * mass_V[-1]).sum())
            ids.append(drawn if sampling.temperature else int(logprobs_V.argmax()))
            logprobs.append(float(logprobs_V[ids[-1]]))
            await asyncio.sleep(0)  # other requests go on meanwhile
        self.drawn += len(ids)
        with open(self.file, "a") as file:
            print(json.dumps([*key, turn, ids, logprobs, version, self.drawn]), file=file)
        return Reply(ids, logprobs, "stop" if ids[-1] in self.ends else "length", version)

    def logprobs(self, ids, temperature):
        import torch

        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        return torch.log_softmax(logits / temperature, -1)

    async def load(self, weights, version):
        self.whole = False
        self.model.load_state_dict(dict(weights.tensors()), strict=False)
        self.version, self.whole = version, True

    async def sleep(self):
        self.awake = False

    async def wake(self):
        self.awake = True


@ENGINES.register(PlainConfig)
def plain(context, config):
    return PlainEngine(context, config)


def main() -> None:
    import manyturn as mt

    warmup = {"max_updates": 60, "check_episodes": 4, "must_succeed": False}
    sizes = {"rollout": {"tasks": 4, "group": 4}, "evaluation": {"limit": 4}, "steps": 2}
    mt.train("manyturn/Maze-v0", engine={"name": "plain", "replies": "replies.jsonl"}, warmup=warmup, **sizes).show()


if __name__ == "__main__":
    main()
