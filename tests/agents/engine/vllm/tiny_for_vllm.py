"""A model that vLLM's CPU build takes, requests to an engine, and how far its answers are from the learner's."""

from collections.abc import Sequence
from typing import Any

import torch

from manyturn.agents.engine.engine import Engine, Reply, Sampling
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.text.choice_decoding import Choices, ReplyChoices
from manyturn.agents.text.formats.free_text import FreeText, FreeTextConfig
from manyturn.agents.tokens.episode_key import EpisodeKey

KEY = EpisodeKey(0, "train/1", "a", 0)
LONG = [5 + 7 * i % 90 for i in range(300)]  # more than two of the CPU build's blocks, which have 128 tokens


def tiny_for_vllm(texts: Sequence[str], **more: Any) -> LanguageModel:
    """Tied embeddings, and heads of 32 numbers, the fewest that vLLM's CPU build takes."""
    language = build_tiny(texts, 0, 1024, torch.device("cpu"), width=64, heads=2, **more)
    with torch.no_grad():
        for name, parameter in language.model.named_parameters():
            parameter.mul_(3 if "proj" in name else 1)
    return language


def changed(language: LanguageModel, seed: int) -> ModuleWeights:
    """The model after an update that nobody can overlook."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in language.model.parameters():
            parameter.add_(0.1 * parameter.std() * torch.randn(parameter.shape, generator=noise))
    return ModuleWeights(language.model)


async def ask(engine: Engine, key: EpisodeKey = KEY, prompt: Sequence[int] = LONG, **sampling: Any) -> Reply:
    return await engine.generate(key, 0, prompt, Sampling(**{"max_tokens": 12, **sampling}))


def gap(language: LanguageModel, reply: Reply, prompt: Sequence[int] = LONG) -> float:
    """Largest difference between a reply's log-probabilities and the learner's."""
    with torch.no_grad():
        logits = language.model(input_ids=torch.tensor([[*prompt, *reply.ids]])).logits[0, len(prompt) - 1 : -1]
    ours = torch.log_softmax(logits, -1).gather(-1, torch.tensor(reply.ids)[:, None])[:, 0]
    return float((ours - torch.tensor(reply.logprobs)).abs().max())


def choices_of(language: LanguageModel, *commands: str) -> Choices:
    """What can be said where these commands are admissible."""
    return ReplyChoices(FreeText(FreeTextConfig()), language.template).of(commands)


def limited_gap(language: LanguageModel, reply: Reply, choices: Choices, heat: float = 1.0) -> float:
    """Largest difference between a reply's log-probabilities and the learner's over what was possible."""
    with torch.no_grad():
        logits = language.model(input_ids=torch.tensor([[*LONG, *reply.ids]])).logits[0, len(LONG) - 1 : -1] / heat
    allowed = choices.along(reply.ids)
    assert allowed is not None, "it is none of the commands"
    rows = zip(reply.ids, allowed, logits, reply.logprobs, strict=True)
    return max(abs(float(row[token] - row[list(some)].logsumexp(-1)) - told) for token, some, row, told in rows)
