"""The run's own critic as a value of searches: what the value head that PPO trains expects from a place on.

It reads what the policy would read next, as before the first token of a reply. The head and the hidden states below it
are those of the run's checkpoint, in a second copy of the model. Source: PPO-MCTS, Liu et al. 2023, "Don't throw away
your value model!", arXiv 2309.15028, section 3, which searches by the critic that PPO has trained.

Differences: theirs is a tree of tokens with the policy as prior; here places lie between turns, any method of search
uses the value, and rewards count only with ``rewards``.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np

from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ValueContext
from manyturn.envs.contract.options.registry import Named


class CriticValueConfig(Named):
    """Return that the run's critic expects from a place on."""

    name: Literal["critic"] = "critic"
    rewards: bool = False
    """Add the rewards of the path, and where it has ended count nothing else, as the critic's targets do. They may
    hold the outcome, which no policy reads."""


@VALUES.register(CriticValueConfig)
class CriticValue(PlaceValue):
    """Return that the run's critic expects from a place on."""

    reads = reads_prompt = True

    def __init__(self, context: ValueContext, config: CriticValueConfig):
        from manyturn.trainers.learn.learner.head_factory import head_of
        from manyturn.trainers.learn.passes.forward import Reader
        from manyturn.trainers.learn.passes.pass_budget import PassBudget
        from manyturn.trainers.record.checkpoint import ONE_POLICY, read_tensors
        from manyturn.trainers.run.setup.saved_policy import saved_run

        folder = Path(context.word)
        run = saved_run(folder.resolve()) if folder.is_dir() else None
        if run is None or run.config.value is None:
            raise ValueError(
                f"--search.value critic needs a run with a critic, and {context.word} has none: name a run that was "
                "trained with a section [value], such as one of recipe ppo, or take --search.value likelihood"
            )
        if run.config.value.body == "own":
            raise ValueError(
                f"--search.value critic reads the policy's hidden states, and the critic of {context.word} has a body "
                "of its own (value.body = 'own'): name a run with value.body = 'policy', or take --search.value "
                "likelihood"
            )
        language, learner = run.language(ONE_POLICY), run.config.learner
        budget = PassBudget(learner.micro_tokens)
        head = head_of(run.config.value, language.model, learner, budget)
        head.fit.load_tensors(read_tensors(run.checkpoint))
        self._watch = head.watch
        self._reader = Reader(language.model, budget, context.agent.sampling.temperature, learner.packing)
        self._longest, self._rewards = run.config.agent.max_context, config.rewards
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="critic")

    async def of(self, place: SearchPlace) -> float:
        earned = sum(one.seen.reward for one in place.path if one.acted) if self._rewards else 0.0
        if self._rewards and place.closed:
            return earned
        assert place.prompt is not None, "it says that it reads the prompt"
        ids = place.prompt[: self._longest]
        place.read_tokens = len(ids)
        return earned + await asyncio.get_running_loop().run_in_executor(self._thread, self._read, ids)

    def _read(self, prompt: list[int]) -> float:
        from manyturn.trainers.learn.passes.samples import Sample

        ids = np.array([*prompt, prompt[-1]])  # the last one stands for a reply's first token, and is not read
        reply_mask = np.arange(len(ids)) == len(prompt)
        sample = Sample(0, ids, reply_mask, np.zeros(len(ids)), np.where(reply_mask, 0, -1))
        return float(self._reader.over([sample], {"value": self._watch})["value"][0][-1])
