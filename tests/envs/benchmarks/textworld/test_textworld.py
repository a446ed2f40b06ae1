"""A remade game that plays otherwise, a command that reaches the interpreter, a program that runs with foreign options.

The recordings are not part of the project: the folder is ``$MANYTURN_DATA/textworld-parity``, with ``games.json`` (game
-> arguments of tw-make) and ``transcripts.json.gz`` (episodes with game and turns of action, feedback, description,
inventory, admissible, score, won, done, ir).
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needs import peer
from needs_files import data

from manyturn.envs.benchmarks.textworld.env import TextWorld
from manyturn.envs.benchmarks.textworld.games import GameError, game_file
from manyturn.envs.benchmarks.textworld.presets import PRESETS
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.tasks.task import Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    peer("textworld")


@pytest.fixture
def env() -> Iterator[TextWorld]:
    env = TextWorld(rewards="plan")
    yield env
    env.close()


def recorded(turn: dict[str, Any], state: Any) -> tuple[list[Any], list[Any]]:
    """What was recorded of a turn, and what there is now."""
    names = {"admissible": "admissible_commands", "ir": "intermediate_reward"}
    fields = [name for name in turn if name not in ("action", "done")]
    return [turn[name] for name in fields], [state[names.get(name, name)] for name in fields]


def test_a_recorded_episode_has_no_other_turn_here(capsys: pytest.CaptureFixture[str]) -> None:
    folder = data("textworld-parity", "games.json")
    arguments = json.loads((folder / "games.json").read_text())
    files = sorted(folder.glob("transcripts*.json.gz"))
    episodes = [episode for file in files for episode in json.loads(gzip.decompress(file.read_bytes()))]
    for episode in episodes:
        words = list(arguments[Path(episode["game"]).stem])[1:]
        place = words.index("--seed")
        seed, words = int(words[place + 1]), words[:place] + words[place + 2 :]
        env = TextWorld(make=words, max_turns=10_000)
        env.reset(seed=0, options={"task": Task("replayed", "train", {"make": words, "seed": seed})})
        first, *turns = episode["turns"]
        message = f"{episode['game']} {episode['mode']}"
        before, now = recorded(first, env._state)
        assert now == before and env._state["objective"] == episode["objective"], message
        for turn in turns:
            *_, terminated, _, info = env.step(turn["action"])
            before, now = recorded(turn, env._state)
            assert now == before and terminated == turn["done"], f"{message}: {turn['action']}"
            assert info["admissible"] == turn["admissible"]
        env.close()
    assert episodes
    with capsys.disabled():
        print(f" {len(episodes)} episodes replayed", end="")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_plan_of_each_preset_succeeds_within_its_turns(preset: str) -> None:
    env = TextWorld("validation", preset, rewards="score")
    env.reset(seed=0, options={"task": env.tasks("validation")[0].id})
    terminated = truncated = False
    paid = 0.0
    while not (terminated or truncated):
        _, _, terminated, truncated, info = env.step(env.expert())
        paid += info["reward_parts"].get("score", 0.0)
    assert info["success"] and info["progress"] == 1 and 0 <= paid < 1
    env.close()


def test_a_game_is_made_once_and_again_with_the_same_turns(env, monkeypatch, tmp_path) -> None:
    task = env.tasks("train")[0]
    path, texts = [], [env.reset(seed=0, options={"task": task.id})]
    while len(path) < 3:
        path.append(env.expert())
        texts.append(env.step(path[-1]))
    snapshot, file = env.snapshot(), game_file(task.params["make"], task.params["seed"])
    made = file.stat().st_mtime_ns
    other = TextWorld(rewards="plan")
    other.restore(snapshot)
    assert (other.observation, other.anchor(), other.expert()) == (env.observation, env.anchor(), env.expert())
    assert file.stat().st_mtime_ns == made
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path))
    again = [other.reset(seed=0, options={"task": task.id}), *map(other.step, path)]
    assert again == texts and (tmp_path / "textworld").is_dir()
    other.close()


@pytest.mark.parametrize(
    "action",
    [
        *("save", "restore", "script", "restart", "quit", "undo", "tw-trace-actions", "tw-extra-infos score"),
        *(
            "look. save",
            "look then quit",
            "look, save",
            "look\nquit",
            "",
            "x" * 100_000,
            "\ud800",
            "l\u00f6ok",
            "go\u00a0north",
            ">",
        ),
    ],
)
def test_a_command_of_the_interpreter_never_reaches_it(env: TextWorld, action: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    env.reset(seed=0, options={"task": env.tasks("train")[0].id})
    before = env.anchor()
    _, reward, terminated, _, info = env.step(action)
    assert not info["understood"] and reward == 0 and not terminated and env.anchor() == before
    assert not list(tmp_path.iterdir())


def test_the_contract_holds() -> None:
    report = check("manyturn/TextWorld-v0", kwargs={"size": 1}, samples=1, timeout=600)
    assert not report.failed, report.findings


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"make": ["custom", "--third-party", "evil.py"]}, "leave it out"),
        ({"make": ["custom", "--third=evil.py"]}, "leave it out"),
        ({"make": ["custom", "--out", "/tmp/x"]}, "leave it out"),
        ({"make": ["custom", "-f"]}, "leave it out"),
        ({"make": ["tw-coin_colector"]}, "tw-coin_collector"),
        ({"make": ["custom"], "difficulty": "coin"}, "leave out one"),
        ({"rewards": "dense"}, "plan"),
        ({"size": 0}, "from 1"),
    ],
)
def test_a_wrong_option_is_refused_before_a_game_is_made(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        TextWorld(**options)


def test_a_game_that_cannot_be_made_is_an_error_with_its_reason() -> None:
    env = TextWorld(make=["tw-cooking", "--go", "5"])
    with pytest.raises(GameError, match="invalid choice"):
        env.reset(seed=0)
