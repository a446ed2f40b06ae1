"""The recipe rlver-tiny: its limits leave room for a long talk, and only the user's emotion is paid."""

import asyncio

import pytest

from manyturn.agents.model.language_model import tiny_tokenizer
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure

RECIPE = configure(load_recipe("rlver-tiny"))


def test_a_talk_of_ten_turns_fits_into_replies_and_context_and_pays_its_last_emotion():
    handle = EnvHandle(RECIPE.env.id, RECIPE.env.args)
    texts = asyncio.run(texts_of(InlineSeats(RECIPE.env.id, RECIPE.env.args), RECIPE.agent, 100, 0))
    tokenizer = tiny_tokenizer(texts, digits=True)
    for number, task in enumerate(handle.tasks("test")[:12]):
        step, total, turns = handle.reset(task, 0), 20, 0  # marks of whose turn it is
        while not step.ended:
            action = step.admissible[(7 * turns + number) % len(step.admissible)]
            reply = len(tokenizer(action)["input_ids"]) + 1
            assert reply <= RECIPE.sampling.max_tokens, action
            total += reply + len(tokenizer(step.observation)["input_ids"])
            step, turns = handle.step(action), turns + 1
        assert total <= RECIPE.agent.max_context, turns
        assert step.parts == {"outcome": step.progress} and handle.part_names == ()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_recipe_learns(tmp_path):
    from manyturn.trainers.run.loop.loop import train

    small = {"steps": 12, "evaluation": {"limit": 150}}
    summary = asyncio.run(train(configure(load_recipe("rlver-tiny"), small), tmp_path / "run"))
    assert summary["after"]["return"] > summary["before"]["return"] + 0.05, summary
