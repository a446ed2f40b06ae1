"""GiGPO's similarity compares what was seen: texts that differ in a number are one situation, others never are."""

import asyncio

import numpy as np
import pytest
from short_runs import short_run

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.recipes import load_recipe
from manyturn.trainers.credit.groups.situations import anchor_groups
from manyturn.trainers.play.rollout.rollout_batch import plan_groups, turn_batch
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

# The visitor's steps are counted aloud, so that no situation ever comes back in the same words.
MUSEUM = """
import manyturn as mt

HALLS = (
    "Whales hang from the ceiling of this enormous blue hall. The guard has counted {} of your remarks.",
    "You are between glass cases full of beetles, moths and wasps; somebody coughs {} times behind you.",
    "A narrow stair leads up to the tower clock, whose bell has by now struck on {} occasions.",
)

class Museum(mt.TextEnv):
    instructions = "Walk to the tower."
    max_turns = 9

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(8)]

    def begin(self, task, rng):
        self.hall, self.letters = 0, 0
        return self.seen()

    def seen(self):
        return HALLS[self.hall].format(self.letters)

    def respond(self, action):
        self.letters += len(action)
        if action not in self.admissible():
            return self.invalid(self.seen())
        self.hall += action == "go"
        return self.succeed("The tower.") if self.hall == 3 else self.go_on(self.seen())

    def admissible(self):
        return ["go", "look", "listen"]

    def expert(self):
        return "go"
"""
KEYED = """
class Keyed(Museum):
    def anchor(self):
        return (self.task.id, self.hall, self.letters)
"""


@pytest.fixture
def museum(tmp_path):
    (tmp_path / "museum.py").write_text(MUSEUM + KEYED)
    return f"{tmp_path}/museum.py:Museum"


async def walks(name, workers):
    async with open_seats(name, limit=8, workers=workers) as seats:
        plan = plan_groups(seats.tasks("train")[:2], 8, 0, "walk")
        return await gather(seats, Scripted(1.0), plan, max_turns=9)


@pytest.mark.parametrize("workers", [0, 1])
def test_halls_that_differ_in_a_number_are_one_situation_and_other_halls_never_are(museum, workers):
    episodes = asyncio.run(walks(museum, workers))
    batch = turn_batch(episodes)
    exact_K, alike_K = anchor_groups(batch), anchor_groups(batch, 0.9)
    halls_K = [turn.observation.split()[0] for episode in episodes for turn in episode.turns]
    assert len(set(alike_K.tolist())) == 6, "two tasks with three halls each"
    assert len({*zip(batch.group_K.tolist(), halls_K, strict=True)}) == 6
    for group in set(alike_K.tolist()):
        assert len({halls_K[k] for k in np.flatnonzero(alike_K == group)}) == 1
    grouped, before = (
        np.isin(c, [i for i, n in enumerate(np.bincount(c)) if n > 1]).mean() for c in (alike_K, exact_K)
    )
    assert grouped == 1.0 and before < 0.8


def test_an_environment_whose_situations_have_no_text_is_refused_before_the_run(museum, tmp_path):
    config = short_run(env={"id": museum.replace("Museum", "Keyed")}, credit={"advantage": {"name": "gigpo"}})
    similar = configure(config.model_dump(mode="json"), {"credit": {"advantage": {"similarity": 0.9}}})
    with pytest.raises(ConfigError, match=r"texts of situations, and those of .*Keyed have none: override anchor_text"):
        asyncio.run(train(similar, tmp_path / "run"))


def test_what_is_learnt_differs_from_plain_gigpo(museum, tmp_path):
    weights = []
    for name, similarity in (("plain", {}), ("alike", {"similarity": 0.9})):
        run = configure(
            short_run(env={"id": museum}, steps=1, checkpoint_every=1).model_dump(mode="json"),
            {"credit": {"advantage": {"name": "gigpo", **similarity}}},
        )
        asyncio.run(train(run, tmp_path / name))
        weights.append((tmp_path / name / "checkpoints/step_000001/model/model.safetensors").read_bytes())
    assert weights[0] != weights[1]


def test_the_recipe_takes_similarity(museum):
    assert load_recipe("gigpo-similarity")["credit"]["advantage"]["similarity"] == 0.9
