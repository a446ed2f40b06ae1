"""What a tiny model's words are taken from must not depend on where tasks are played, and no task may stop it."""

import asyncio
import itertools
from pathlib import Path

import pytest

from manyturn.agents.model.language_model import words_of
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.local.seats import open_seats

TRAPS = Path(__file__).parents[2] / "envs" / "traps.py"
MAZE = "manyturn/Maze-v0"


def gathered(name: str, tasks: int, workers: int = 0, timeout: float = 60.0, **options) -> list[str]:
    async def run() -> list[str]:
        async with open_seats(name, workers=workers, timeout=timeout) as seats:
            return await texts_of(seats, AgentConfig(), tasks, 0, **options)

    return asyncio.run(run())


def test_the_texts_are_the_same_in_any_number_of_processes():
    alone = gathered(MAZE, 12)
    assert gathered(MAZE, 12, workers=1) == gathered(MAZE, 12, workers=3) == alone
    assert len(set(alone)) > 40


@pytest.mark.deep
@pytest.mark.parametrize("cls", ["Spins", "Freezes", "Sleeps", "Leaves"])
def test_an_environment_that_hangs_or_dies_is_an_error_in_time(cls):
    with pytest.raises(TooManyErrors, match=r"vocabulary ended in an error, the last, train/\d+: worker .* is gone"):
        gathered(f"{TRAPS}:{cls}", 3, workers=2, timeout=0.5, patience=Patience(attempts=1))


def test_a_task_that_always_dies_is_left_out_and_the_others_count():
    found = gathered(f"{TRAPS}:Poison", 40, workers=2, patience=Patience(attempts=2))
    calm = gathered(f"{TRAPS}:Calm", 40)
    assert "room 3" in calm and "room 3" not in found
    assert {text for text in calm if text.startswith("room")} - set(found) == {"room 3"}


def test_what_no_encoding_takes_does_not_reach_the_words():
    found = gathered(f"{TRAPS}:Garbles", 4)
    assert any(text.endswith(" \ufffd") for text in found)
    assert words_of(found)


def test_it_is_told_how_far_it_is():
    seen: list[tuple[int, int]] = []
    gathered(MAZE, 5, on_task=lambda *place: seen.append(place))
    assert seen == list(zip(range(1, 6), itertools.repeat(5), strict=False))
