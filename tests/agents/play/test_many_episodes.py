"""Thousands of episodes in one process: each must stay small, need no thread, and leave nothing behind."""

import asyncio
import os
import threading
import tracemalloc

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Act
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.seats import open_seats

MAZE = "manyturn/Maze-v0"
KILOBYTES_EACH = 20  # 10,000 episodes in 1 GB leave 100 each, transcripts included; this is what one may hold idle


class Watched:
    """Says nothing of use, lets the others have their turn, and calls ``when_open`` once ``wanted`` are open."""

    name = "watched"
    ledger = None

    def __init__(self, wanted=0, when_open=lambda: None):
        self.open = self.most = 0
        self._wanted, self._when_open = wanted, when_open

    def player(self, key, instructions):
        self.open += 1
        self.most = max(self.most, self.open)
        return self

    async def act(self, step, seat) -> Act:
        await asyncio.sleep(0)  # until here every episode is reset, none has had a turn
        if self.open == self._wanted:
            self._wanted = 0
            self._when_open()
        return Act("wait", "wait")

    def leave(self):
        self.open -= 1


def plan_of(seats, count, stage="scale"):
    tasks = seats.tasks("train")[:count]
    return [(task, EpisodeKey(0, stage, task.id, 0)) for task in tasks]


async def play(policy, limit, count):
    async with open_seats(MAZE, limit=limit) as seats:
        return await gather(seats, policy, plan_of(seats, count), max_turns=3)


def test_as_many_episodes_are_open_as_there_are_seats_and_no_more():
    for limit, count in ((150, 150), (20, 150), (150, 20)):
        policy = Watched()
        assert len(asyncio.run(play(policy, limit, count))) == count
        assert (policy.most, policy.open) == (min(limit, count), 0)


def test_an_episode_takes_no_thread_no_file_and_no_process():
    """A thread each costs megabytes and turns a thousand episodes into a thousand contenders for one lock."""
    seen = []

    def look():
        seen.append((threading.active_count(), len(os.listdir("/proc/self/fd"))))

    for count in (2, 150):
        asyncio.run(play(Watched(count, look), count, count))
    few, many = seen
    # What an earlier test has left in this process may end meanwhile; what matters is that nothing is added.
    assert many[0] <= few[0] and many[1] <= few[1]


def test_an_idle_episode_stays_small():
    """Environment, seat, task and coroutines of an episode that waits for its policy, counted to the byte."""
    held = {}

    def measure(count):
        def look():
            held[count] = tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            asyncio.run(play(Watched(count, look), count, count))
        finally:
            tracemalloc.stop()

    measure(2)  # whatever is made once
    measure(10)
    measure(110)
    assert (held[110] - held[10]) / 100 < KILOBYTES_EACH * 1000


def test_seats_keep_nothing_of_the_episodes_that_were_played_on_them():
    """A run plays millions of episodes on the same seats."""

    async def growth() -> list[int]:
        held = []
        async with open_seats(MAZE, limit=20) as seats:
            for number in range(6):
                await gather(seats, Watched(), plan_of(seats, 20, f"round {number}"), max_turns=3)
                held.append(tracemalloc.get_traced_memory()[0])
        return held

    tracemalloc.start()
    try:
        held = asyncio.run(growth())
    finally:
        tracemalloc.stop()
    assert held[-1] - held[1] < 20 * 4 * 100  # less than 100 bytes for each episode since the second round
