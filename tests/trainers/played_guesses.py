"""Episodes of a guessing game by a real model and engine, for tests of what the learner makes of them."""

import asyncio
from pathlib import Path
from typing import Any

import torch

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.teacher_prompts import Advice, Advised
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import InlineSeats, Seats, open_seats
from manyturn.trainers.recipe.config import RunConfig, configure

EIGHT = f"{Path(__file__).with_name('eight.py')}:Eight"
MOST_TURNS = 4
SIZES: dict[str, Any] = {
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "warmup": {
        "episodes": 24,
        "must_succeed": False,
        "batch": 4,
        "max_updates": 12,
        "check_every": 12,
        "check_episodes": 2,
    },
    "rollout": {"tasks": 3, "group": 3},
    "learner": {"minibatch": 3},
    "evaluation": {"limit": 2},
    "steps": 4,
    "checkpoint_every": 2,
}


def guess_model(config: AgentConfig) -> LanguageModel:
    texts = asyncio.run(texts_of(InlineSeats(EIGHT), config, 8, 0))
    return build_tiny(texts, 0, 512, torch.device("cpu"), width=16, layers=2, heads=2)


def played(
    language: LanguageModel, config: AgentConfig, workers: int = 0, max_turns: int = 9, advice: Advice | None = None
) -> list[Episode]:
    """One episode of each of three tasks."""
    return asyncio.run(_played(language, config, open_seats(EIGHT, limit=4, workers=workers), max_turns, advice))


async def _played(
    language: LanguageModel, config: AgentConfig, seats: Seats, max_turns: int, advice: Advice | None
) -> list[Episode]:
    engine = TransformersEngine(language.model, language.template.end_ids)
    agent = Agent(config, language.template, engine, Sampling(max_tokens=12))
    plan = [(task, EpisodeKey(0, "train/1", task.id, 0)) for task in seats.tasks("train")[:3]]
    async with seats:
        policy = agent if advice is None else Advised(agent, advice)
        return await gather(seats, policy, plan, max_turns=max_turns)


def short_guesses(**changes: object) -> RunConfig:
    """A run of seconds."""
    return configure({}, {"env": {"id": EIGHT}}, {**SIZES, **changes})
