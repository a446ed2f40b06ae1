"""A benchmark of similarity whose world repeats itself after all, or whose groups mix what is not the same."""

import asyncio
import json
import re
from pathlib import Path

from benchmarks.credit import similarity
from manyturn.trainers.credit.batch.turn_batch import ids_of
from manyturn.trainers.credit.groups.situations import anchor_groups
from manyturn.trainers.play.rollout.rollout_batch import turn_batch


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


def test_the_page_has_the_figures_of_the_file():
    found = json.loads(similarity.OUT.read_text())["worlds"]
    page = (Path(__file__).parents[3] / "docs" / "credit-inputs.md").read_text()
    names = {
        "a shop with the time on each page": "busy_shop",
        "`Talk-Tutor-v0`": "tutor",
        "`Talk-Support-v0`": "support",
    }
    for name, world in (names | {"`Shop-v0`": "shop"}).items():
        shares = [f"{found[world][key]['grouped']:.0%}".replace("%", " %") for key in ("equal", "0.95", "0.9", "0.8")]
        [row] = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", page, re.MULTILINE)
        assert [cell.strip() for cell in row.split("|")] == [*shares, f"{found[world]['0.9']['cpu_seconds']:.2g} s"]
    mixed = [f"{found['busy_shop'][key]['mixed']:.1%}".replace("%", " %") for key in ("0.95", "0.9", "0.8")]
    assert f"{mixed[0]}, {mixed[1]} and {mixed[2]} come from pages" in " ".join(page.split())
