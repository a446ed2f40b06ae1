"""Sizes of an installation that pages state and no result has, or that count what training brings."""

import json
from pathlib import Path

from benchmarks.speed.install_size import OUT, own_megabytes

ROOT = Path(__file__).parents[3]


def test_pages_state_the_measured_sizes_and_training_is_what_weighs():
    result = json.loads(OUT.read_text(encoding="utf-8"))
    light, full = (result[name]["megabytes"] for name in ("without extras", "train"))
    assert f"# {light} MB: check, play" in (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert f"takes {light} MB" in page and f"{full:,} MB" in page
    assert not {"torch", "scipy"} & result["without extras"]["largest"].keys() and light < full / 3
    assert own_megabytes() < 12, "manyturn itself has become large"
