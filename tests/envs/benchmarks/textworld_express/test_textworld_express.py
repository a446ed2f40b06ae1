"""A game that differs by what was played before or beside it, a path that the clock draws, bounds that are not."""

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needs import peer
from needs_java import java_package

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.envs.benchmarks.java_process import JavaObject
from manyturn.envs.benchmarks.textworld_express.engine import UNKNOWN, GameError
from manyturn.envs.benchmarks.textworld_express.env import TextWorldExpress
from manyturn.envs.benchmarks.textworld_express.games import GAMES, tasks_of
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

NAME = "manyturn/TextWorldExpress-v0"
UNCLEAR = 22  # of peckingorder's validation games: two things have one name
all_games = pytest.mark.parametrize("game", GAMES)


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    java_package("textworld_express", "textworld-express")


@pytest.fixture
def env(game: str) -> Iterator[TextWorldExpress]:
    env = TextWorldExpress("validation", game, rewards="score")
    yield env
    env.close()


def java_of(env: TextWorldExpress) -> JavaObject:
    java = env._engine._java
    assert java is not None
    return java


def turns_of(env: TextWorldExpress, task: str, actions: list[str]) -> list[Any]:
    """Text and info of an episode's turns."""
    text, info = env.reset(seed=0, options={"task": task})
    return [(text, info), *((step[0], step[4]) for step in map(env.step, actions))]


def solution(env: TextWorldExpress, task: str) -> list[str]:
    """The expert's actions, and what they have to bring."""
    path, (_, info), paid = list[str](), env.reset(seed=0, options={"task": task}), 0.0
    while "success" not in info:
        path.append(env.expert())
        assert path[-1] in info["admissible"]
        *_, info = env.step(path[-1])
        paid += info["reward_parts"].get("score", 0.0)
    assert info["success"] and info["progress"] == 1 and info["measures"] == {"score": 1.0} and 0 <= paid < 1
    return path


@pytest.fixture(scope="module")
def original() -> Iterator[Any]:
    """The package's own class, in a Java process of its own."""
    engine = peer("textworld_express").TextWorldExpressEnv(envStepLimit=1000)
    yield engine
    engine.close()


@all_games
def test_a_game_has_no_other_turn_than_in_the_package(env: TextWorldExpress, original: Any, game: str) -> None:
    for number in (0, 7):
        task, draw = env.tasks("validation")[number], random.Random(number)
        text, info = env.reset(seed=0, options={"task": task.id})
        theirs, about = original.reset(task.params["seed"], task.params["fold"], game, "")
        assert text == f"{about['taskDescription'].strip()}\n\n{theirs.strip()}"
        for _ in range(40):
            assert info["admissible"] == sorted(set(about["validActions"]))
            action = draw.choice([*info["admissible"], "dance"])
            text, _, terminated, _, info = env.step(action)
            theirs, _, done, about = original.step(action)
            score = about["score"]
            assert (text.splitlines()[0], terminated) == (theirs.strip().splitlines()[0], done), action
            assert (info["progress"], info["understood"]) == (max(0.0, score), theirs.strip() != UNKNOWN)
            if done:
                assert info["success"] == (score >= 1) and info["measures"] == {"score": score}
                break


@all_games
def test_ten_games_in_one_java_process_change_no_turn_no_path_and_no_snapshot(
    env: TextWorldExpress, game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = env.tasks("validation")[4].id
    path = solution(env, task)
    before, half = turns_of(env, task, path), len(path) // 2
    turns_of(env, task, path[:half])
    snapshot, process = env.snapshot(), java_of(env).process
    for other in GAMES:
        beside = TextWorldExpress("validation", other)
        for number in (4, 5):
            solution(beside, f"validation/{other}/{number}")
    for place in (env, TextWorldExpress("validation", game, rewards="score")):
        assert turns_of(place, task, path) == before and java_of(place).process is process
        place.restore(snapshot)
        assert (place.observation, place.anchor(), place.turn) == (before[half][0], before[half][1]["anchor"], half)
        assert place.expert() == path[half]
        assert [place.step(action)[0] for action in path[half:]] == [text for text, _ in before[half + 1 :]]
    other = TextWorldExpress("validation", game, rewards="score", seconds=119)  # for which another process is started
    assert solution(other, task) == path
    assert turns_of(other, task, path) == before and java_of(other).process is not process
    assert not list(tmp_path.iterdir())


@all_games
def test_a_group_on_one_task_side_by_side_does_not_mix(env: TextWorldExpress, game: str) -> None:
    task = env.tasks("validation")[4].id
    path = solution(env, task)
    before = turns_of(env, task, path)
    members = [env, *(TextWorldExpress("validation", game, rewards="score") for _ in range(3))]
    for member in members:
        member.reset(seed=0, options={"task": task})
    assert len({id(java_of(member).process) for member in members}) == 1
    for action, (text, info) in zip(path, before[1:], strict=True):
        for member in members:
            assert member.expert() == action
            step = member.step(action)
            assert (step[0], step[4]) == (text, info)


@all_games
def test_splits_and_bounds_of_parameters_are_the_engines(env: TextWorldExpress, game: str) -> None:
    env.reset(seed=0)
    java = java_of(env)
    assert set(java.texts("getGameNames")) == set(GAMES)
    for split, theirs in {"train": "Train", "validation": "Dev", "test": "Test"}.items():
        seeds = [task.params["seed"] for task in tasks_of(split, game, {})]
        assert json.loads(java.call(f"getSeeds{theirs}").toString()) == seeds
    for name, values in GAMES[game].parameters.items():
        if values == range(2) or (name == "numLocations" and game == "mapreader"):
            continue  # switches have no bounds there; with 1, 49 and 50 rooms the engine makes no map
        for value in (values[0], values[-1], values[-1] + 1):
            assert (java.call("load", game, f"{name}={value}") == "") == (value in values), (name, value)


@pytest.mark.parametrize("parameters", [{"numLocations": 2, "maxDistanceApart": 1}, {"numLocations": 48}])
def test_the_smallest_and_the_largest_map_can_be_played(parameters: dict[str, int]) -> None:
    env = TextWorldExpress("test", "mapreader", parameters, rewards="score")
    for number in range(8):
        solution(env, f"test/mapreader/{number}")


def test_a_game_that_the_engine_cannot_make_is_an_error_that_names_parameters() -> None:
    env = TextWorldExpress("test", "mapreader", {"numLocations": 2, "maxDistanceApart": 8})
    with pytest.raises(GameError, match="parameters"):
        for number in range(20):
            env.reset(seed=0, options={"task": f"test/mapreader/{number}"})


def test_a_fatal_mistake_ends_the_episode_without_a_reward() -> None:
    env = TextWorldExpress("validation", "peckingorder", rewards="score")
    env.reset(seed=0, options={"task": f"validation/peckingorder/{UNCLEAR}"})
    for _ in range(3):
        _, reward, terminated, _, info = env.step(env.expert())
    assert (reward, terminated, info["success"], info["measures"]) == (0.0, True, False, {"score": -1.0})


def test_what_is_no_command_never_reaches_the_engine_as_one() -> None:
    env = TextWorldExpress("validation", "coin")
    _, before = env.reset(seed=0)
    for action in ("x" * 100_000, "look\x00around", "\ud800", "look\u00a0around", "LOOK AROUND", "dance", "", "help"):
        text, reward, terminated, _, info = env.step(action)
        assert (text, reward, terminated, info["understood"]) == (UNKNOWN, 0.0, False, False)
        assert info["anchor"] == before["anchor"]
    assert env.step(" look around\n")[4]["understood"]


def test_an_evaluation_of_all_splits_has_no_error(tmp_path: Path) -> None:
    async def success_of(split: str) -> float:
        async with open_seats(NAME, {"game": "coin"}, limit=4) as seats:
            panel = make_panel(seats.tasks(split), NAME, split, 4)
            plan = EvaluationPlan(panel, repeats=2, seed=0, max_turns=100, patience=Patience(attempts=1))
            return (await evaluate(seats, Scripted(), plan, out=tmp_path / split)).summary["success"]["mean"]

    assert [asyncio.run(success_of(split)) for split in ("train", "validation", "test")] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_games_that_no_policy_can_win_are_as_many_as_the_page_says() -> None:
    lost = 0
    for split in ("train", "validation", "test"):
        env = TextWorldExpress(split, "peckingorder")
        for task in env.tasks(split):
            _, info = env.reset(seed=0, options={"task": task.id})
            while "success" not in info:
                *_, info = env.step(env.expert())
            lost += not info["success"]
    assert lost == 55


@pytest.mark.slow
@all_games
def test_the_contract_holds(game: str) -> None:
    report = check(NAME, kwargs={"game": game}, samples=2)
    assert not report.failed, report.findings


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"game": "cooking"}, "cookingworld"),
        ({"game": "coin", "parameters": {"rooms": 3}}, "numLocations"),
        ({"game": "sorting", "parameters": {"numLocations": 3}}, "none"),
        ({"parameters": {"numLocations": 12}}, "from 1 to 11"),
        ({"parameters": {"numLocations": "3,seed=4"}}, "from 1 to 11"),
        ({"parameters": {"includeDoors": True}}, "from 0 to 1"),
        ({"rewards": "turns"}, "score"),
        ({"seconds": 0}, "3600"),
    ],
)
def test_a_wrong_option_is_refused_before_java_starts(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        TextWorldExpress(**options)
