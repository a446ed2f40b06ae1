"""A benchmark of wires whose clients play something else than what it times in this process."""

import asyncio
import json
import sys
from importlib.util import find_spec

import pytest

if any(find_spec(name) is None for name in ("mcp", "uvicorn", "wsproto")):
    pytest.skip("no server: pip install 'manyturn[serve,mcp]'", allow_module_level=True)

from benchmarks.serving import protocols


@pytest.mark.parametrize("wire", ["openenv", "nemo-gym"])
def test_a_wire_that_plays_other_turns_is_no_figure(wire):
    recorded = protocols.record("manyturn/Desk-v0", 2)
    wrong = [
        episode._replace(turns=[(a, f"{text}!", r, over) for a, text, r, over in episode.turns]) for episode in recorded
    ]
    with protocols.server("manyturn/Desk-v0", wire, 0) as url:
        assert asyncio.run(protocols.through(wire, url, recorded, 2)) > 0
        with pytest.raises(SystemExit, match="turn 0 of seed"):
            asyncio.run(protocols.through(wire, url, wrong, 1))


@pytest.mark.slow
def test_every_way_has_its_figures(tmp_path, monkeypatch):
    words = ("--only", "Desk", "--episodes", "4", "--workers", "0", "--out", str(tmp_path / "found.json"))
    monkeypatch.setattr(sys, "argv", [protocols.__file__, *words])
    protocols.main()
    found = json.loads((tmp_path / "found.json").read_text())["steps_per_second"]["Desk"]
    assert {way: set(speeds) for way, speeds in found.items()} == {
        "in this process": {"1"},
        "mcp": {"1", "64"},
        "openenv": {"1", "64"},
        "nemo-gym": {"1", "64"},
    }
    assert all(speed > 0 for speeds in found.values() for speed in speeds.values())
