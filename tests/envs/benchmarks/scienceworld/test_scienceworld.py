"""A simulator that differs by its history, hangs, dies in the middle of a run, or pays for what it did not see.

The recordings are not part of the project: the folder is ``$MANYTURN_DATA/scienceworld-gold``, with
``gold_transcripts.json.gz`` (episodes with task, variation, simplification and turns of action, obs, score, done).
"""

import asyncio
import gzip
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needs_files import data
from needs_java import java_package

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.envs.benchmarks.java_process import JavaLost, JavaObject
from manyturn.envs.benchmarks.scienceworld.env import ScienceWorld
from manyturn.envs.benchmarks.scienceworld.simulator import sorted_lists
from manyturn.envs.benchmarks.scienceworld.variations import KINDS, split_range
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = [pytest.mark.deep, pytest.mark.versions, pytest.mark.timeout(900)]

NAME = "manyturn/ScienceWorld-v0"
SHORT = {"tasks": ["find-non-living-thing", "lifespan-longest-lived"]}
ANIMALS = "validation/identify-life-stages-2/4"  # its lists of animals came in other orders after each load
KILLED = '''
import os, signal
from pathlib import Path
from manyturn.envs.benchmarks.scienceworld.env import ScienceWorld

class Killed(ScienceWorld):
    """Its Java process is killed in the middle of the first episode of each second task."""
    tries = {}

    def begin(self, task, rng):
        Killed.tries[task.id] = Killed.tries.get(task.id, 0) + 1
        return super().begin(task, rng)

    def respond(self, action):
        if self.turn == 2 and Killed.tries[self.task.id] == 1 and self.task.params["variation"] % 2:
            keeper = self._simulator._java.process.pid
            [java] = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
            os.kill(int(java), signal.SIGKILL)
        return super().respond(action)
'''


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    java_package("scienceworld", "scienceworld")


@pytest.fixture
def env() -> Iterator[ScienceWorld]:
    env = ScienceWorld(rewards="turns")
    yield env
    env.close()


def java_of(env: ScienceWorld) -> JavaObject:
    java = env._simulator._java
    assert java is not None
    return java


def turns_of(env: ScienceWorld, task: str, actions: list[str]) -> list[Any]:
    """Text and info of an episode's turns."""
    turns: list[Any] = [env.reset(seed=0, options={"task": task})]
    for action in actions:
        text, *_, info = env.step(action)
        turns.append((text, info))
    return turns


def load_ten_others(env: ScienceWorld) -> None:
    process = java_of(env).process
    for place in range(10):
        env.reset(seed=0, options={"task": env.tasks("train")[place].id})
        env.step("look around")
    assert java_of(env).process is process


def test_a_recorded_episode_has_no_other_turn_here(capsys: pytest.CaptureFixture[str]) -> None:
    folder = data("scienceworld-gold")
    episodes = [
        one for file in sorted(folder.glob("*.json.gz")) for one in json.loads(gzip.decompress(file.read_bytes()))
    ]
    for episode in episodes:
        env = ScienceWorld(simplification=episode["simplification"], max_turns=10_000)
        splits = (split for split in env.splits if episode["variation"] in split_range(episode["task"], split))
        task = f"{next(splits)}/{episode['task']}/{episode['variation']}"
        text, info = env.reset(seed=0, options={"task": task})
        first, *turns = episode["turns"]
        assert text == f"{episode['task_description'].strip()}\n\n{sorted_lists(first['obs'].strip())}", task
        assert sorted_lists(f"{first['look'].strip()}\n{first['inv'].strip()}") in info["anchor"]
        for turn in turns:
            text, _, terminated, _, info = env.step(turn["action"])
            end = ("\nThe task has failed." if turn["score"] < 0 else "\nThe task is done.") if turn["done"] else ""
            message = f"{task}, {turn['action']}"
            assert (text, terminated) == (f"{sorted_lists(turn['obs'].strip())}{end}", turn["done"]), message
            assert round(100 * info["progress"]) == max(0, turn["score"]), message
            assert not terminated or info["measures"] == {"score": turn["score"]}, message
        env.close()
    assert episodes
    with capsys.disabled():
        print(f" {len(episodes)} episodes replayed", end="")


def test_the_splits_are_the_simulators(env: ScienceWorld) -> None:
    env.reset(seed=0)
    java = java_of(env)
    assert set(java.texts("getTaskNames")) == set(KINDS)
    assert set(java.call("getPossibleSimplifications").split(", ")) == {
        *("teleportAction", "openDoors", "selfWateringFlowerPots", "openContainers", "noElectricalAction")
    }
    for name, kind in KINDS.items():
        java.call("load", name, 0, "", False)
        assert java.call("getTaskMaxVariations", name) == kind.variations
        for split, theirs in {"train": "Train", "validation": "Dev", "test": "Test"}.items():
            text = java.call(f"getVariations{theirs}").toString()
            assert json.loads(text) == list(split_range(name, split)), (name, split)


def test_ten_loads_in_one_java_process_change_no_turn_no_anchor_and_no_snapshot(env: ScienceWorld) -> None:
    path: list[str] = []
    env.reset(seed=0, options={"task": ANIMALS})
    while not path or not env.step(path[-1])[2]:
        path.append(env.expert())
    before = turns_of(env, ANIMALS, path)
    load_ten_others(env)
    assert turns_of(env, ANIMALS, path) == before
    half = len(path) // 2
    turns_of(env, ANIMALS, path[:half])
    snapshot = env.snapshot()
    load_ten_others(env)
    other = ScienceWorld(rewards="turns", seconds=119)  # for which another process is started
    other.reset(seed=0, options={"task": ANIMALS})
    assert java_of(other).process is not java_of(env).process
    for place in (env, other):
        place.restore(snapshot)
        assert (place.observation, place.anchor(), place.turn) == (before[half][0], before[half][1]["anchor"], half)
        assert [place.step(action)[0] for action in path[half:]] == [text for text, _ in before[half + 1 :]]
    other.close()


def test_a_java_process_that_is_killed_in_a_run_loses_and_changes_no_episode(tmp_path: Path) -> None:
    file = tmp_path / "killed.py"
    file.write_text(KILLED)

    def played(name: str) -> tuple[list[Any], list[int], Any]:
        async def run() -> Any:
            async with open_seats(name, SHORT, limit=2) as seats:
                panel = make_panel(seats.tasks("test"), name, "test", 6)
                plan = EvaluationPlan(panel, repeats=1, seed=0, max_turns=50, patience=Patience(attempts=6))
                return await evaluate(seats, Scripted(), plan, out=tmp_path / name.rpartition(":")[2].partition("/")[0])

        evaluation = asyncio.run(run())
        columns = ("task", "turn", "observation", "action", "reward", "reward_parts", "anchor", "progress")
        turns = [[turn[column] for column in columns] for turn in evaluation.turns]
        return turns, [episode["attempts"] for episode in evaluation.episodes], evaluation.summary

    turns, attempts, summary = played(NAME)
    killed_turns, killed_attempts, killed_summary = played(f"{file}:Killed")
    assert killed_turns == turns and len(turns) > 20
    assert set(attempts) == {1} and max(killed_attempts) > 1
    for name in ("success", "return", "errors"):
        assert killed_summary.get(name) == summary.get(name)


def test_a_java_process_that_hangs_is_killed_and_its_episode_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    env = ScienceWorld(**SHORT, seconds=30)
    env.reset(seed=0)
    env.step("look around")
    keeper = java_of(env).process.pid
    [java] = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    java_of(env).process._gateway._gateway_client.deque[-1].socket.settimeout(2)  # it would wait for 30 s
    os.kill(int(java), signal.SIGSTOP)
    with pytest.raises(JavaLost):
        env.step("look around")
    assert not Path(f"/proc/{java}").exists()
    text, _ = env.reset(seed=0)
    assert text.startswith("Your task is to") and java_of(env).process.pid != keeper
    assert not list(tmp_path.iterdir())  # the simulator keeps a table of types in the folder where it runs
    env.close()


def test_episodes_side_by_side_in_one_java_process_do_not_mix() -> None:
    envs = [ScienceWorld(tasks=[name]) for name in ("find-animal", "power-component", "find-animal", "chemistry-mix")]
    tasks = [env.tasks("train")[0].id for env in envs]
    apart = []
    for env, task in zip(envs, tasks, strict=True):
        env.reset(seed=0, options={"task": task})
        apart.append([(action := env.expert(), env.step(action)[0], env.anchor()) for _ in range(8)])
    for env, task in zip(envs, tasks, strict=True):
        env.reset(seed=0, options={"task": task})
    assert len({id(java_of(env).process) for env in envs}) == 1
    for turn in range(8):
        for env, turns in zip(envs, apart, strict=True):
            assert (env.expert(), env.step(turns[turn][0])[0], env.anchor()) == turns[turn]


def test_a_wrong_focus_ends_the_episode_without_a_reward(env: ScienceWorld) -> None:
    env.reset(seed=0, options={"task": "train/boil/0"})
    assert env.step("go to kitchen")[4]["reward_parts"].keys() <= {"optional"}
    _, reward, terminated, _, info = env.step("focus on stove")
    assert (reward, terminated, info["success"], info["measures"]) == (0.0, True, False, {"score": -100.0})


def test_an_ambiguous_request_offers_numbers_and_a_number_is_understood() -> None:
    env = ScienceWorld(commands=True)
    env.reset(seed=0, options={"task": "train/boil/0"})
    assert len(env.admissible() or ()) > 100
    _, *_, info = env.step("open door")
    assert info["understood"] and info["admissible"] == ["0", "1", "2", "3", "4", "5"]
    text, *_, info = env.step("0")
    assert text == "The door is already open." and len(info["admissible"]) > 100
    for action in ("x" * 100_000, "open\x00door", "\ud800", "go\u00a0to\u00a0kitchen", "dance"):
        text, reward, terminated, _, info = env.step(action)
        assert not info["understood"] and reward == 0 and not terminated
    env.close()


@pytest.mark.slow
def test_the_contract_holds() -> None:
    failed = [finding for finding in check(NAME, kwargs=SHORT, samples=2).findings if finding.status == "failed"]
    assert not failed, failed


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"tasks": ["boyl"]}, "boil"),
        ({"tasks": []}, "tasks"),
        ({"simplification": "hard"}, "easy"),
        ({"simplification": "noElectricalAction"}, "power-component"),
        ({"limits": "eto", "tasks": ["inclined-plane-determine-angle"]}, "limits"),
        ({"limits": "eto", "max_turns": 5}, "max_turns"),
        ({"rewards": "all"}, "turns"),
        ({"seconds": 0}, "3600"),
    ],
)
def test_a_wrong_option_is_refused_before_java_starts(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        ScienceWorld(**options)


def test_published_limits_are_those_of_each_task() -> None:
    env = ScienceWorld(limits="eto")
    assert len(env.tasks("train")) == sum(len(split_range(name, "train")) for name in KINDS if KINDS[name].limit)
    env.reset(seed=0, options={"task": "train/find-animal/0"})
    for turn in range(15):
        *_, truncated, _ = env.step("wait1")
        assert truncated == (turn == 14)
    env.close()
