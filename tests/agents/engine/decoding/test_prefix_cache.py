"""Pages that are lost, used by two who write, or shared by those who differ would mix up what episodes have read."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.agents.engine.decoding.page_pool import PAGE, CacheShape, PagePool
from manyturn.agents.engine.decoding.prefix_cache import Caches
from manyturn.agents.engine.decoding.row import Row

pytestmark = pytest.mark.versions

SHAPE = CacheShape(layers=1, heads=1, size=1, dtype=torch.float32)
PAGES, LIMIT = 14, 5
# Few tokens, and beginnings that are long and often the same: most of what can go wrong is in sharing.
PROMPTS = st.builds(
    lambda start, runs: [start] * 20 + [token for token, length in runs for _ in range(length)],
    st.integers(0, 1),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), min_size=1, max_size=3),
)
STEPS = st.lists(st.tuples(st.sampled_from(["ask", "pass", "end", "start over", "forget"]), st.integers(0, 4), PROMPTS))


class World:
    """Episodes that ask, and a memory in which each slot holds the token and position that was written there."""

    def __init__(self) -> None:
        self.pool = PagePool(SHAPE, PAGES, torch.device("cpu"))
        self.caches, self.running = Caches(self.pool), dict[int, Row]()
        self.slots: dict[int, tuple[int, ...]] = {}

    def ask(self, key: int, prompt: list[int]) -> None:
        if key in self.running:
            return
        row = Row(prompt, [0.5] * LIMIT, 1.0)
        found = self.caches.begin(key, row, asking=(), alone=not self.running)
        assert found == "begun" or self.running, "alone, there is room for all that fits at all"
        if found == "begun":
            assert row.cached < len(prompt)
            self.running[key] = row
            self.look(row)

    def forward(self, count: int) -> None:
        """Every row computes a few tokens more."""
        rows = list(self.running.values())
        before = [row.computed for row in rows]
        for row in rows:
            for place in range(row.computed, min(row.length, row.computed + 1 + 7 * count)):
                self.slots[int(row.pages[place // PAGE]) * PAGE + place % PAGE] = tuple(row.tokens(0, place + 1))
                row.computed += 1
            if row.computed == row.length and len(row.ids) < LIMIT:
                row.ids.append(count % 3)
        self.caches.learnt(rows, before)

    def look(self, row: Row) -> None:
        """Each place that a row relies on holds what the row itself would have written there."""
        for place in range(row.computed):
            slot = int(row.pages[place // PAGE]) * PAGE + place % PAGE
            assert self.slots[slot] == tuple(row.tokens(0, place + 1))

    def end(self, key: int, keep: bool) -> None:
        if key in self.running:
            row = self.running.pop(key)
            if keep:
                self.look(row)
            self.caches.end(key, row, keep=keep)

    def start_over(self) -> None:
        for key, row in list(self.running.items()):
            row.begin(row.pages.tolist(), row.cached)
            self.end(key, keep=True)

    def users(self) -> list[int]:
        """How often each page is used, counted anew."""
        held = [row.pages.tolist() for row in self.running.values()]
        held += [kept.pages for kept in self.caches.entries.values()]
        return [sum(pages.count(page) for pages in held) for page in range(1, PAGES + 1)]


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_no_page_is_lost_or_shared_by_those_who_differ(steps):
    world = World()
    for what, key, prompt in steps:
        match what:
            case "ask":
                world.ask(key, prompt[:180])
            case "pass":
                world.forward(key)
            case "end":
                world.end(key, keep=bool(prompt[0]))
            case "start over":
                world.start_over()
            case "forget" if key not in world.running:
                world.caches.forget(key)
        for row in world.running.values():
            world.look(row)
        counted = world.users()
        assert [world.pool.users(page) for page in range(1, PAGES + 1)] == counted
        assert world.pool.free == counted.count(0)
    for key in list(world.running):
        world.end(key, keep=False)
    world.caches.clear()
    assert world.pool.free == PAGES


def test_members_of_a_group_hold_their_common_beginning_once():
    world, prompt = World(), [7] * 40
    world.ask(0, prompt)
    world.ask(1, prompt)
    assert list(world.running) == [0], "the second waits a pass for what the first computes"
    world.forward(9)
    for key in (1, 2):
        world.ask(key, prompt)
        assert world.running[key].cached == 2 * PAGE
    assert PAGES - world.pool.free == 2 + 3, "two pages that all read, and one of each to write to"
    world.forward(9)
    for key in (0, 1, 2):
        world.end(key, keep=True)
    assert PAGES - world.pool.free == 2 + 3


def test_an_episode_that_waits_for_its_environment_gives_way_to_one_that_asks():
    world = World()
    for key in range(3):
        world.ask(key, [key] * 60)
        world.forward(9)
        world.end(key, keep=True)
    assert list(world.caches.entries) == [0, 1, 2] and world.pool.free == PAGES - 12
    world.ask(3, [3] * 90)
    assert list(world.caches.entries) == [1, 2], "the one that was used longest ago"
    found = world.caches.begin(4, Row([4] * 90, [0.5] * LIMIT, 1.0), asking=(1, 2))
    assert found == "full" and {1, 2} <= set(world.caches.entries), "those that ask themselves keep what they have"
