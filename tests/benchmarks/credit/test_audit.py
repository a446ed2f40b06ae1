"""Tables of the credit audit's page that its result does not have."""

import json
from pathlib import Path

from benchmarks.credit import horizon
from benchmarks.credit.audit import OUT, WORLDS, page
from benchmarks.credit.worlds.horizon import Horizon

PAGE = Path(__file__).parents[3] / "docs" / "credit-audit-results.md"


def test_the_page_has_the_tables_of_the_result_and_ranks_only_by_a_reliable_truth():
    result = json.loads(OUT.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert result["worlds"].keys() == WORLDS.keys()
    assert [part for part in page(result).split("\n\n") if part.startswith("|") and part not in text] == []
    assert all(world["truth"]["reliability"] >= 0.8 for world in result["worlds"].values())
    assert all(len({one["method"] for one in world["methods"]}) >= 12 for world in result["worlds"].values())


def test_the_page_has_the_table_of_horizons_and_all_lengths_differ_in_nothing_but_idle_turns():
    result = json.loads(horizon.OUT.read_text(encoding="utf-8"))
    assert horizon.page(result) in PAGE.read_text(encoding="utf-8")
    assert all(row["truth"]["reliability"] >= 0.8 for row in result["lengths"])
    for places in horizon.TURNS:
        env = Horizon(places=places)
        env.reset(seed=0)
        turns = [env.step(env.expert()) for _ in range(places)]
        assert [reward for _, reward, *_ in turns] == [0.0] * (places - 1) + [1.0]
        assert len(env.task.params["decisive"]) == 2
