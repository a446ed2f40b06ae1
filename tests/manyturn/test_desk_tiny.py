"""What the recipe ``desk-tiny`` gives its model must suffice for held-out customers, and teach it to serve them."""

import asyncio
from collections.abc import Iterator

import pytest

from manyturn.agents.model.language_model import tiny_tokenizer
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.desk.env import Desk
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

RECIPE = load_recipe("desk-tiny")
SMALLER = {
    "warmup": {"until_success": 0.3, "check_every": 50},
    "evaluation": {"limit": 100, "repeats": 2},
    "steps": 16,
}


def transcripts(split: str, count: int) -> Iterator[list[tuple[str, str]]]:
    """Observations and actions of the expert."""
    env = Desk(split=split, **RECIPE["env"]["args"])
    for task in env.tasks(split)[:count]:
        seen, info = env.reset(seed=0, options={"task": task})
        turns, ended = [], False
        while not ended:
            action = env.expert()
            turns.append((seen, action))
            seen, _, terminated, ended, info = env.step(action)
            ended |= terminated
        assert info["success"], f"{task.id}: the turn limit is too low for the expert"
        yield turns


def test_a_held_out_customer_is_told_in_known_tokens_and_the_limits_leave_room_for_the_expert() -> None:
    config = configure(RECIPE)
    assert config.model.name == "tiny-1m"
    seats = InlineSeats(config.env.id, config.env.args)
    texts = asyncio.run(texts_of(seats, config.agent, config.model.sample_tasks, config.seed))
    tokenizer = tiny_tokenizer(texts, digits=config.model.numbers == "digits")
    known: set[int] = set()
    for turns in transcripts("train", 200):
        known.update(token for turn in turns for text in turn for token in tokenizer(text)["input_ids"])
    for turns in transcripts("test", 200):
        lengths = [[len(tokenizer(text)["input_ids"]) for text in turn] for turn in turns]
        assert known.issuperset(token for turn in turns for text in turn for token in tokenizer(text)["input_ids"])
        assert max(said for _, said in lengths) < config.sampling.max_tokens, "a reply's end is a token too"
        assert sum(seen + said + 3 for seen, said in lengths) <= config.agent.max_context


@pytest.mark.slow
def test_the_recipe_learns_in_a_smaller_form(tmp_path) -> None:
    summary = asyncio.run(train(configure(RECIPE, SMALLER), tmp_path / "run"))
    assert summary["difference"]["ci_low"] > 0, summary
