"""What nobody can know is taken neither for a reward nor for an error."""

import asyncio

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.scripted import Scripted
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.play.rollout.rollouts import describe, turn_batch


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
