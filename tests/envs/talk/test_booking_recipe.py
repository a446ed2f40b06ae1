"""The recipe booking-tiny: its limits leave room for the expert, and it teaches."""

import asyncio

import pytest

from manyturn.agents.model.language_model import tiny_tokenizer
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import configure

RECIPE = configure(load_recipe("booking-tiny"))


def test_a_held_out_booking_fits_into_replies_and_context():
    handle = EnvHandle(RECIPE.env.id, RECIPE.env.args)
    seats = InlineSeats(RECIPE.env.id, RECIPE.env.args)
    texts = asyncio.run(texts_of(seats, RECIPE.agent, RECIPE.model.sample_tasks, 0))
    tokenizer = tiny_tokenizer(texts, digits=True)
    spare = 20  # marks of whose turn it is
    for task in handle.tasks("test")[:20]:
        step, total = handle.reset(task, 0), spare
        while not step.ended:
            reply = len(tokenizer(action := handle.expert())["input_ids"]) + 1
            assert reply <= RECIPE.sampling.max_tokens, action
            total += reply + len(tokenizer(step.observation)["input_ids"])
            step = handle.step(action)
        assert step.success and total <= RECIPE.agent.max_context / 2, "errors need room, too"


def test_the_gate_stands_between_failure_and_success_of_an_environment_that_pays_turns():
    (stage,) = RECIPE.credit.rewards
    assert stage.named_parts() == {"outcome"} and 0 < stage.gates[0].threshold < 1
    assert EnvHandle(RECIPE.env.id, RECIPE.env.args).part_names == ("informed",)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_recipe_learns(tmp_path):
    from manyturn.trainers.run.loop.loop import train

    small = {"steps": 12, "evaluation": {"limit": 150}}
    summary = asyncio.run(train(configure(load_recipe("booking-tiny"), small), tmp_path / "run"))
    assert summary["before"]["success"] < 0.6, "there must be something left to learn"
    assert summary["difference"]["ci_low"] > 0, summary
