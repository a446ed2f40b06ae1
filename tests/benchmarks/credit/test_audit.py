"""Tables of the credit audit's page that its result does not have."""

import json
from pathlib import Path

from benchmarks.credit.audit import OUT, WORLDS, page

PAGE = Path(__file__).parents[3] / "docs" / "credit-audit.md"


def test_the_page_has_the_tables_of_the_result_and_ranks_only_by_a_reliable_truth():
    result = json.loads(OUT.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert result["worlds"].keys() == WORLDS.keys()
    assert [part for part in page(result).split("\n\n") if part.startswith("|") and part not in text] == []
    assert all(world["truth"]["reliability"] >= 0.8 for world in result["worlds"].values())
    assert all(len({one["method"] for one in world["methods"]}) >= 12 for world in result["worlds"].values())
