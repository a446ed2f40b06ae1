"""A benchmark of similarity whose world repeats itself after all, or whose groups mix what is not the same."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import similarity

from manyturn.trainers.credit.advantages.gigpo import anchor_groups
from manyturn.trainers.credit.turn_batch import ids_of
from manyturn.trainers.play.rollouts import turn_batch


def test_pages_that_repeat_only_after_the_same_actions_are_grouped_by_their_texts_as_the_plain_shop_would_group_them():
    worlds = (similarity.BUSY, similarity.PLAIN)
    [episodes], [others] = (asyncio.run(similarity.played(world, 1, tasks=2)) for world in worlds)
    busy, plain = turn_batch(episodes), turn_batch(others)
    done = [(e.task.id, tuple(t.action for t in e.turns[:turn])) for e in episodes for turn in range(len(e.turns))]
    assert (anchor_groups(busy) == ids_of(done)).all(), "a page is the same only after the same actions"
    found = similarity.survey([busy], [plain])
    assert found["equal"]["grouped"] < 0.35 and found["equal"]["mixed"] == 0
    assert found["0.9"]["grouped"] > 0.8 and found["0.9"]["signal"] > 0.7
    assert found["0.95"]["mixed"] < found["0.9"]["mixed"] < 0.15
