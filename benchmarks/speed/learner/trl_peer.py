"""TRL's trainer on the samples of ``learner.py``, measured where it is installed; nothing here is a dependency."""

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from manyturn.trainers.learn.passes.samples import Sample

INSTALLED = find_spec("trl") is not None
_CLIPPED = {"beta": 0.0, "epsilon": 0.2, "loss_type": "dapo", "learning_rate": 1e-5}  # the loss of learner.py


def imported() -> tuple[Any, Any, Any]:
    """Its trainer and its options, and what holds prompts."""
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    return GRPOTrainer, GRPOConfig, Dataset


class TrlLearner:
    """Its loss and the optimiser that it makes, in passes of at most ``micro_tokens`` tokens, padding included.

    It is given what makes it fast: samples sorted by length, no activations computed twice, nothing logged.

    Attributes:
        asked, computed: tokens of the samples of the last update; tokens that passed the model.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, micro_tokens: int):
        GRPOTrainer, GRPOConfig, Dataset = imported()
        self._folder = TemporaryDirectory()
        quiet = {"bf16": False, "use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no"}
        self._trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(8)]}),
            processing_class=tokenizer,
            args=GRPOConfig(str(Path(self._folder.name)), gradient_checkpointing=False, **quiet, **_CLIPPED),
        )
        self._trainer.current_gradient_accumulation_steps = self._trainer.args.steps_per_generation
        self._trainer.create_optimizer()
        self._micro_tokens = micro_tokens
        self.requested_tokens = self.computed = 0

    def learn(self, samples: Sequence[Sample]) -> float:
        """One update in which each token that was said has an advantage of 1; the norm of its gradient."""
        model, total = self._trainer.model, sum(int(sample.reply_mask.sum()) for sample in samples)
        model.train()
        self.requested_tokens, self.computed = sum(len(sample.ids) for sample in samples), 0
        for chosen in self._passes(samples):
            inputs = _inputs(chosen, total)
            self.computed += inputs["prompt_ids"].numel() + inputs["completion_ids"].numel()
            self._trainer._compute_loss(model, inputs).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), self._trainer.args.max_grad_norm)
        self._trainer.optimizer.step()
        self._trainer.optimizer.zero_grad()
        return float(norm)

    def _passes(self, samples: Sequence[Sample]) -> Iterator[list[Sample]]:
        chosen: list[Sample] = []
        for sample in sorted(samples, key=lambda sample: len(sample.ids)):
            if chosen and _area([*chosen, sample]) > self._micro_tokens:
                yield chosen
                chosen = []
            chosen.append(sample)
        yield chosen


def _prompt(sample: Sample) -> int:
    return int(sample.reply_mask.argmax())


def _area(samples: Sequence[Sample]) -> int:
    """Prompts and completions are padded apart."""
    prompt = max(_prompt(sample) for sample in samples)
    return len(samples) * (prompt + max(len(sample.ids) - _prompt(sample) for sample in samples))


def _inputs(samples: Sequence[Sample], total: int) -> dict[str, Any]:
    """Input of TRL's loss: prompts padded on the left, completions on the right, observations masked in them."""
    prompt = max(_prompt(sample) for sample in samples)
    completion = max(len(sample.ids) - _prompt(sample) for sample in samples)
    made = {
        f"{part}_{what}": torch.zeros(len(samples), width, dtype=torch.long)
        for part, width in (("prompt", prompt), ("completion", completion))
        for what in ("ids", "mask")
    }
    reply_mask = torch.zeros(len(samples), completion, dtype=torch.long)
    old = torch.zeros(len(samples), completion)
    for row, sample in enumerate(samples):
        first, rest = _prompt(sample), len(sample.ids) - _prompt(sample)
        ids = torch.from_numpy(sample.ids)
        made["prompt_ids"][row, prompt - first :], made["prompt_mask"][row, prompt - first :] = ids[:first], 1
        made["completion_ids"][row, :rest], made["completion_mask"][row, :rest] = ids[first:], 1
        reply_mask[row, :rest] = torch.from_numpy(sample.reply_mask[first:])
        old[row, :rest] = torch.from_numpy(sample.engine_logprob[first:])
    ones = torch.ones(len(samples))
    return made | {
        "tool_mask": reply_mask,
        "old_per_token_logps": old,
        "advantages": ones,
        "num_items_in_batch": torch.tensor(total),
    }
