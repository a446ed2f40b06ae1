"""What nobody can know is taken neither for a reward nor for an error."""

import asyncio
import math

import numpy as np
import pytest

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.stages import ADVANTAGES
from manyturn.trainers.play.rollout.rollout_batch import describe, turn_batch


def test_a_reward_that_nobody_can_know_is_neither_zero_nor_an_error(tmp_path):
    """A judge that did not answer says NaN: the episode leaves its group, the others are compared without it."""
    file = tmp_path / "judged.py"
    file.write_text(
        "import manyturn as mt\n"
        "class Judged(mt.TextEnv):\n"
        "    instructions = 'Say something.'\n"
        "    max_turns = 2\n"
        "    def tasks(self, split):\n"
        "        return [mt.Task(f'{split}/{n}', split, {'n': n, 'split': split}) for n in range(3)]\n"
        "    def begin(self, task, rng):\n"
        "        self.n = task.params['n']\n"
        "        return 'Well?'\n"
        "    def respond(self, action):\n"
        "        return self.fail('over', outcome=(float('nan'), 0.0, 1.0)[self.n])\n"
    )

    async def play():
        async with open_seats(f"{file}:Judged") as seats:
            plan = [(task, EpisodeKey(0, "train/1", task.id, 0)) for task in seats.tasks("train")]
            return await gather(seats, Scripted(1.0), plan, max_turns=2)

    episodes = asyncio.run(play())
    assert not any(episode.ending.is_error for episode in episodes)
    for episode in episodes:
        episode.key = episode.key._replace(task="one group")
    earned = credit(turn_batch(episodes), CreditConfig(advantage={"name": "grpo", "std": False}))
    assert earned.advantage_K.tolist() == [0.0, -0.5, 0.5]
    assert describe(episodes)["return"] == 0.5


@pytest.mark.parametrize("name", ADVANTAGES.names())
def test_no_method_computes_with_what_nobody_knows(name):
    """All episodes of the second task are unscorable, so that its statistics are those of nothing."""
    rewards = [[0, 1], [0, 0], [math.nan, 1], [math.nan]]
    batch = TurnBatch.from_episodes(
        rewards,
        groups=[0, 0, 1, 1],
        anchors=["ab", "ab", "ab", "a"],
        columns={
            column: [[0] * len(one) for one in rewards]
            for column in ("action", "drawer", "tempered", "drift", "implicit", "reference")
        },
        token_columns={"value": [[[0]] * len(one) for one in rewards]},
    )
    more = {"stratified": {"stratum": "turns"}, "rtmc": {"prior": 0.0}, "spo": {"forgetting": "steady"}}
    with np.errstate(invalid="raise", divide="raise"):
        earned = credit(batch, CreditConfig(advantage={"name": name, **more.get(name, {})}))
    assert not earned.advantage_K[~batch.scorable_K].any()
