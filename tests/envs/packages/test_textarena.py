"""``textarena:NAME``: another game under one seed, games that disturb each other, games that call out or never end."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.envs.contract.registration.env_registry import NeedsSetup, UnknownEnv
from manyturn.envs.hosting.handle.env_handle import EnvHandle

if find_spec("textarena") is None:
    pytest.skip("no games: pip install 'manyturn[textarena]'", allow_module_level=True)

from textarena.envs.registration import ENV_REGISTRY

from manyturn.envs.packages.textarena_games import FIXED, READ, refusal

pytestmark = pytest.mark.versions

MOVES = {
    "2048": ("[up]", "[left]", "[down]", "[right]"),
    "Bandit": ("[red]", "[blue]"),
    "Blackjack": ("[hit]", "[stand]"),
    "FrozenLake": ("[down]", "[right]", "[up]"),
    "GuessTheNumber": ("[5]", "[9]", "[13]", "[2]"),
    "LightsOut": ("[0 1]", "[2 3]"),
    "Mastermind": ("[1 2 3 4]", "[4 3 2 1]", "[2 5 6 1]"),
    "Mastermind-v0-extreme": ("[1 2 3 4 5 6]", "[7 7 8 8 9 9]"),
    "Minesweeper": ("[1 1]", "[3 3]", "[0 4]"),
    "PegJump": ("[12 5]", "[10 8]"),
    "Secretary": ("[continue]",),
    "TowerOfHanoi": ("[A C]", "[A B]", "[C B]"),
}
ODD = ("", "[]", "[[", f"[{'9' * 6000}]", f"[{'9' * 900}]", "[0 0 0 0]", "\ud800", "[up" * 90, "[²]", "x" * 100_000)
PLAY = """
import sys
sys.path.insert(0, sys.argv[1])
from test_textarena import played
from manyturn.envs.contract.random_keys import digest
print(digest([played(name, task=f"train/{seed}") for name in sys.argv[2].split() for seed in range(3)]))
"""


def played(name: str, task: str = "train/0", most: int = 40) -> list:
    handle, moves = EnvHandle(f"textarena:{name}"), MOVES.get(name) or MOVES[name.partition("-")[0]]
    found = handle.env.get_wrapper_attr("find")(task)
    turns = [handle.reset(found, seed=1)]
    while not turns[-1].ended and len(turns) < most:
        turns.append(handle.step(moves[len(turns) % len(moves)]))
    return [(turn.observation, turn.reward, turn.terminated, turn.success, turn.understood) for turn in turns]


@pytest.mark.parametrize("name", sorted(READ))
def test_a_game_is_the_same_whatever_the_process_has_drawn_and_leaves_that_as_it_was(name):
    random.seed(1)
    before = random.getstate()
    one = played(name)
    assert random.getstate() == before
    random.seed(2)
    assert played(name) == one
    assert name in FIXED or len({str(played(name, f"train/{seed}")) for seed in range(1, 9)}) > 1, "no seed"


@pytest.mark.parametrize("name", sorted(READ))
def test_a_move_that_is_none_is_answered_or_ends_the_game_but_does_not_win_it(name):
    handle = EnvHandle(f"textarena:{name}")
    task = handle.tasks("train")[0]
    for odd in ODD:
        handle.reset(task, seed=0)
        for _ in range(3):
            turn = handle.step(odd)
            assert not turn.success and turn.reward < 1
            if turn.ended:
                break
            assert not turn.understood, (odd, turn.observation)


def test_games_that_run_at_once_do_not_draw_from_each_other():
    names = ["2048-v0", "Blackjack-v0", "Minesweeper-v0", "FrozenLake-v0"] * 4
    alone = {name: played(name) for name in set(names)}
    with ThreadPoolExecutor(8) as pool:
        for name, turns in zip(names, pool.map(played, names), strict=True):
            assert turns == alone[name]


@pytest.mark.deep
def test_another_process_plays_the_same_games():
    words = [sys.executable, "-c", PLAY, os.path.dirname(__file__), "2048-v0 Bandit-v0 Mastermind-v0 Minesweeper-v0"]
    ended = [
        subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "77")
    ]
    assert ended[0].stdout == ended[1].stdout and len(ended[0].stdout) > 20


def test_a_game_that_was_not_read_or_has_several_players_is_refused_by_name():
    assert ENV_REGISTRY.keys() > READ
    for name in ENV_REGISTRY.keys() - READ:
        with pytest.raises(UnknownEnv, match=f"^{name} is not played"):
            mt.make(f"textarena:{name}")
    assert "downloads" in str(refusal("Wordle-v0", True)) and "several players" in str(refusal("TicTacToe-v0", True))
    with pytest.raises(UnknownEnv, match="did you mean FrozenLake-v0"):
        mt.make("textarena:FrozenLak-v0")


@pytest.mark.parametrize("name", ["FrozenLake-v0", "Wordle-v0", "Later-v0"])
def test_another_version_is_refused_before_its_games_are_looked_up(name, monkeypatch):
    monkeypatch.setattr("manyturn.envs.packages.textarena.version", lambda package: "0.8.0")
    monkeypatch.delitem(ENV_REGISTRY, name, raising=False)
    with pytest.raises(NeedsSetup, match=r"^textarena 0\.8\.0 is installed"):
        mt.make(f"textarena:{name}")


def test_a_game_in_which_nothing_is_drawn_has_one_task_and_no_tasks_held_out():
    handle = EnvHandle("textarena:TowerOfHanoi-v0")
    assert handle.splits == ("train",) and len(handle.tasks("train")) == 1
    handle.reset(handle.tasks("train")[0], seed=0)
    for move in ("[A C]", "[A B]", "[C B]", "[A C]", "[B A]", "[B C]"):
        assert not handle.step(move).ended
    end = handle.step("[A C]")
    assert end.terminated and end.success and end.parts == {"outcome": 1.0}


@pytest.mark.deep
def test_the_command_line_checks_and_evaluates_it(command, tmp_path):
    name = "textarena:GuessTheNumber-v0"
    found = command("check", name, "--samples", 2)
    assert found.code == 0, found.out + found.err
    found = command("evaluate", "random", "--env", name, "--limit", 4, "--out", tmp_path / "random")
    assert found.code == 0, found.out + found.err
    rows = read_episodes(tmp_path / "random" / "episodes.parquet")
    assert len(rows) == 4 and all(row["success"] is False for row in rows)
    found = command("evaluate", "expert", "--env", name, "--limit", 4, "--out", tmp_path / "expert")
    assert found.code == 2 and "has no expert" in found.err, found.out + found.err
