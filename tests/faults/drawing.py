"""A tiny model of the maze's words that plays real episodes through a real engine."""

import asyncio
from collections.abc import Callable, Sequence

import torch

from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import InlineSeats, open_seats

MAZE = "manyturn/Maze-v0"
SAMPLING = Sampling(max_tokens=6)
CLOSE = 1e-4  # nats that the batch's composition may change a log-probability by, in float32
_ROUNDING = 1e-6  # the same in float64, of log-probabilities that are kept in float32


def texts() -> list[str]:
    """What the model's vocabulary is made from."""
    torch.set_num_threads(1)
    return asyncio.run(texts_of(InlineSeats(MAZE), AgentConfig(), tasks=8, seed=0))


def model(words: Sequence[str], seed: int) -> LanguageModel:
    """Random weights that look at what was said before and end replies at varying lengths."""
    language = build_tiny(words, seed, 1024, torch.device("cpu"), width=32)
    with torch.no_grad():
        for name, parameter in language.model.named_parameters():
            parameter.mul_(3 if "proj" in name or name.endswith("model.norm.weight") else 1)
        bias = torch.zeros(len(language.tokenizer))
        bias[language.template.end_id] = 5.0
        language.model.lm_head.bias = torch.nn.Parameter(bias)
    return language


async def play(
    language: LanguageModel,
    engine: Engine,
    plan: Sequence[int],
    seed: int,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Episodes of up to eight turns of the training tasks of these numbers, tried as often as it takes."""
    async with open_seats(MAZE, limit=len(plan)) as seats:
        tasks = seats.tasks("train")
        keys = [(tasks[number], EpisodeKey(seed, "faults", tasks[number].id, 0)) for number in plan]
        agent = Agent(AgentConfig(instructions=False), language.template, engine, SAMPLING)
        patience = Patience(attempts=10_000, error_share=1.0)
        played = gather(seats, agent, keys, max_turns=8, patience=patience, on_episode=on_episode)
        return await asyncio.wait_for(played, 180)


def difference(ours: Episode, undisturbed: Episode) -> str | None:
    """How the ledgers of a float64 model's episodes differ in more than rounding, if they do."""
    if ours.ending is not undisturbed.ending or len(ours.turns) != len(undisturbed.turns):
        return f"{ours.ending} after {len(ours.turns)} turns, not {undisturbed.ending} after {len(undisturbed.turns)}"
    assert ours.ledger is not None and undisturbed.ledger is not None
    if ours.ledger.spans != undisturbed.ledger.spans:
        return "other lengths or versions"
    for mine, theirs in zip(ours.ledger.branches, undisturbed.ledger.branches, strict=True):
        if mine.ids != theirs.ids:
            return "other tokens"
        for name in ("logprobs", "entropies"):
            told = zip(getattr(mine, name), getattr(theirs, name), mine.reply_mask, strict=True)
            gap = max((abs(a - b) for a, b, said in told if said), default=0.0)
            if not gap < _ROUNDING:
                return f"{name} {gap} apart"
    return None
