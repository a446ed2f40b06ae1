"""Pictures of pages that nobody can draw again, that show nothing, or that are too large for a page."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TINY = (
    "steps=2 model.width=16 model.layers=1 model.heads=2 model.sample_tasks=4 warmup.episodes=4 "
    "warmup.must_succeed=false warmup.batch=4 warmup.max_updates=1 warmup.check_every=1 warmup.check_episodes=2 "
    "rollout.tasks=2 rollout.group=2 learner.minibatch=4 evaluation.limit=2"
)


@pytest.mark.slow
def test_the_pictures_are_drawn_of_any_run(chromium, tmp_path):
    command = [sys.executable, "-m", "benchmarks.runs.docs_screenshots", "--out", tmp_path, *TINY.split()]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"live.png", "report.png"}, "and nothing else is left"
    for picture in tmp_path.iterdir():
        image = pytest.importorskip("matplotlib.image").imread(picture)
        assert image.shape[:2] == (750, 1200)
        assert image[200:, :, :3].std() > 0.05, f"{picture.name} is empty"


def test_the_pages_pictures_are_small_and_shown():
    pictures = sorted((ROOT / "docs" / "pictures").iterdir())
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert pictures and all(picture.stat().st_size < 300_000 for picture in pictures)
    assert [picture.name for picture in pictures if f"](pictures/{picture.name})" not in pages] == []
