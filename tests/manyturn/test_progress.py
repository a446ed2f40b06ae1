"""An evaluation that takes hours must say how far it is, and one that is stopped must say how it goes on."""

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from manyturn.agents.evaluation.finished_episodes import Progress
from manyturn.agents.tokens.usage import Spent
from manyturn.terminal.evaluation_progress import Watch


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def watched(steps, error=None, out=None, terminal=False):
    """What is shown of an evaluation whose episodes end at given seconds: (second, progress)."""
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, force_terminal=terminal, width=150, highlight=False)

    async def run():
        async with Watch("mine", out, console, clock) as watch:
            for clock.now, progress in steps:
                watch(progress)
                await asyncio.sleep(0)
            if error is not None:
                raise error

    if error is None:
        asyncio.run(run())
    else:
        with pytest.raises(type(error)):
            asyncio.run(run())
    return text.getvalue()


def after(done, total=340, played=None, spent=Spent(12_000, 345, 0.25), errors=0):  # noqa: B008
    return Progress(total, done, done if played is None else played, errors, done // 2, done, spent)


def test_a_log_has_a_line_every_ten_seconds_and_at_tenths():
    lines = watched([(second, after(second)) for second in range(101)]).splitlines()
    assert lines[0] == (
        "mine: 10 of 340 episodes, success 50%, 1.0 a second, 12k prompt and 345 reply tokens, cost 0.25 USD, "
        "5 min 30 s left"
    )
    counts = [int(line.split()[1]) for line in lines]
    assert counts == [10, 20, 30, 34, 44, 54, 64, 68, 78, 88, 98]


def test_a_short_evaluation_shows_nothing():
    assert watched([(second / 10, after(second, total=10)) for second in range(11)]) == ""


def test_speed_and_time_left_are_of_what_is_played_now():
    told = watched([(0, after(300, played=0)), (30, after(310, played=10, errors=2))])
    assert "success 50%, errors 2, 20.0 a minute" in told and "1 min 30 s left" in told


def test_an_interruption_says_how_to_go_on():
    stopped = asyncio.CancelledError()
    told = watched([(1, after(170))], stopped, Path("found"))
    assert told == "mine: stopped after 170 of 340 episodes; found keeps them, and the same command continues\n"
    told = watched([(1, after(170))], stopped)
    assert told == (
        "mine: stopped after 170 of 340 episodes; nothing is kept: give --out FOLDER, and an interrupted evaluation "
        "continues\n"
    )
    assert watched([(1, after(0))], ValueError("the policy's"), Path("found")) == ""
    assert "found keeps them" in watched([(1, after(5))], ValueError("the policy's"), Path("found"))


@pytest.mark.parametrize(("term", "draws"), [("xterm", True), ("dumb", False)])
def test_a_terminal_shows_a_bar_and_no_lines_unless_it_can_only_append(monkeypatch, term, draws):
    monkeypatch.setenv("TERM", term)
    told = watched([(second, after(second)) for second in range(0, 101, 10)], terminal=True)
    assert ("mine: 1" in told, "100/340" in told) == (not draws, draws)
