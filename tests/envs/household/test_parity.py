"""The twin must answer as the real engine did, on every recorded turn.

The recordings are not part of the project: the folder is ``$MANYTURN_DATA/alfworld-parity``, with
``transcripts.json.gz`` (game -> episodes -> turns of action, obs, admissible, done) and the games' PDDL problems.
"""

import gzip
import json
from pathlib import Path

import pytest
from needs import absent
from needs_files import DATA, NO_DATA, data

from manyturn.envs.household.env import Household
from manyturn.envs.household.pddl import load_game
from manyturn.envs.household.text import GRAMMARS
from manyturn.envs.household.world import Tables, World

pytestmark = pytest.mark.versions

FOLDER = DATA / "alfworld-parity"
TRANSCRIPTS = FOLDER / "transcripts.json.gz"


def recordings() -> dict[str, list]:
    return json.loads(gzip.decompress(TRANSCRIPTS.read_bytes())) if TRANSCRIPTS.is_file() else {}


def file_of(game: str) -> Path:
    data("alfworld-parity", "transcripts.json.gz")
    found = [FOLDER / f"{game}.pddl", *sorted(FOLDER.glob(f"{game}_*.pddl")), *sorted(FOLDER.glob(f"{game}*.tw-pddl"))]
    return next((path for path in found if path.is_file()), None) or absent("DATA", NO_DATA)


@pytest.mark.parametrize("game", sorted(recordings()) or ["missing"])
def test_no_turn_differs_from_the_real_engine(game: str) -> None:
    problem, grammar = load_game(file_of(game))
    goals = FOLDER / "goals.json"
    if goals.is_file() and game in (known := json.loads(goals.read_text())):
        assert problem.sentence.rstrip(".") == known[game][1].rstrip(".")
    tables = Tables(problem, grammar)
    for episode in recordings()[game]:
        world = World(tables)
        for turn in episode:
            text = world.intro() if turn["action"] is None else world.act(turn["action"])[0]
            assert (text, world.admissible(), world.won) == (turn["obs"], turn["admissible"], turn["done"])


def test_every_published_game_is_playable_and_solvable_by_the_expert() -> None:
    if not [*FOLDER.glob("*.pddl"), *FOLDER.glob("*.tw-pddl")]:
        absent("DATA", NO_DATA)
    env = Household("test", games=FOLDER)
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task.id})
        for _ in range(env.max_turns):
            *_, terminated, truncated, info = env.step(env.expert())
            if terminated or truncated:
                break
        assert info["success"], task.id


def test_one_agent_of_several_gives_the_ordinary_game() -> None:
    names = ("multi-agent_game.tw-pddl", "real1_single_agent.pddl")
    game, single = (data("alfworld-parity", *names) / name for name in names)
    problem, grammar = load_game(game, agent="bob")
    assert problem == load_game(single)[0]
    assert grammar.put == GRAMMARS["put"].put and grammar.by_location
