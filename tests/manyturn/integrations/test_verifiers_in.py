"""Tasksets of verifiers as environments: other turns and rewards than verifiers gives, names that import anything."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]
from test_verifiers import evaluated, installed, model  # pyright: ignore[reportMissingImports]

import manyturn as mt
from manyturn.export.exported_env import episode_seed

HEAD = """
from typing import Literal

import verifiers.v1 as vf
from manyturn.integrations.verifiers import TalkConfig, TalkHarness
from verifiers.v1.runtimes import SubprocessConfig
"""
GUESS = (
    HEAD
    + """
__all__ = ["GuessTaskset", "GuessEnv", "GuessHarness"]

class GuessHarness(TalkHarness):
    pass

class GuessData(vf.TaskData):
    number: int

class GuessTask(vf.Task[GuessData, vf.State, vf.TaskConfig]):
    async def setup(self, trace):
        trace.info["low"] = 0

    @vf.stop
    def gave_up(self, trace: vf.Trace) -> bool:
        return trace.last_reply == "I give up"

    @vf.reward(weight=0.5)
    async def short(self, task, trace) -> float:
        return 1.0 / max(1, trace.num_turns)

    @vf.reward
    async def kind(self, trace) -> dict[str, float]:
        return {"please": float("please" in trace.transcript)}

    @vf.metric
    async def turns(self, trace) -> float:
        return trace.num_turns

class GuessConfig(vf.TasksetConfig):
    split: Literal["train", "test"] = "train"
    count: int = 3

class GuessTaskset(vf.Taskset[GuessTask, GuessConfig]):
    def load(self):
        first = 10 if self.config.split == "train" else 20
        for number in range(first, first + self.config.count):
            about = {"system_prompt": "Guess the number.", "prompt": f"It is from {first} to {first + 9}."}
            yield GuessTask(GuessData(id=f"guess-{number}", number=number, **about), self.config.task)

class GuessEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())

class GuessEnv(vf.Env[GuessEnvConfig]):
    async def run(self, task, agents):
        found = 0.0
        async with agents.player.interaction(task) as talk:
            segment = await talk.turn()
            while not segment.terminated:
                if segment.last_reply.split()[:1] == [str(task.data.number)]:
                    found = 1.0
                    break
                if segment.last_reply == "crash":
                    raise OSError("the game crashed")
                segment = await talk.turn(f"It is not {segment.last_reply}.")
        talk.trace.record_reward("found", found, 2.0)

    async def finalize(self, task, episode):
        [trace] = episode.traces
        trace.record_metric("replies", len(trace.assistant_messages))
"""
)
PLAIN = (
    HEAD
    + """
__all__ = ["SumTaskset"]

class SumTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    BODY

class SumTaskset(vf.Taskset[SumTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        for i in __import__("itertools").count():
            yield SumTask(vf.TaskData(prompt=f"{i} + 1 = ?", system_prompt=f"Sum {i}."), self.config.task)
"""
)
REWARD = """
    @vf.reward
    async def right(self, task, trace) -> float:
        return float(trace.last_reply == str(task.idx + 1))
"""


@pytest.fixture(autouse=True)
def _verifiers() -> None:
    host("verifiers")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package from its code, where this process and its children find it."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(str(site))

    def install(name: str, code: str, requires: str = "verifiers") -> str:
        (site / f"{name}.py").write_text(code, encoding="utf-8")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        (info / "METADATA").write_text(about, encoding="utf-8")
        return f"verifiers:{name}"

    return install


def manyturn(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "manyturn", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def played(env: Any, task: str, actions: list[str]) -> tuple[list[str], float, dict[str, float], dict[str, Any]]:
    text, _ = env.reset(seed=0, options={"task": task})
    texts, total, parts, info = [text], 0.0, {}, {}
    for action in actions:
        text, reward, terminated, truncated, info = env.step(action)
        texts.append(text)
        total += reward
        parts |= info["reward_parts"]
    assert terminated or truncated
    return texts, total, parts, info


def test_turns_and_rewards_are_those_of_its_own_evaluation(package, tmp_path):
    env = mt.make(package("guess_in", GUESS))
    script = {
        "0": ["7", "20 please"],
        "1": ["21"],
        "2": ["one", "two", "I give up"],
    }
    ours = {number: played(env, f"test/{number}", actions) for number, actions in script.items()}
    with model({"It is from 20 to 29.": ["21"]}) as url:
        theirs = evaluated("guess_in", tmp_path, url, "--select.include.idx", "[1]")
    [[trace]] = [one["traces"] for one in theirs.values()]
    said = [node["message"]["content"] for node in trace["nodes"]]
    assert said == ["Guess the number.", *ours["1"][0][:-1], "21"]
    assert {name: one["score"] * one["weight"] for name, one in trace["rewards"].items()} == ours["1"][2]
    assert trace["metrics"] == ours["1"][3]["measures"]
    assert ours["0"][0] == ["It is from 20 to 29.", "It is not 7.", "The episode has ended."]
    assert ours["0"][2] == {"found": 2.0, "please": 1.0, "short": 0.25} and ours["0"][1] == 3.25
    assert ours["2"][2] == {"found": 0.0, "please": 0.0, "short": pytest.approx(1 / 6)}
    assert [one[3]["success"] for one in ours.values()] == [True, True, False]
    assert env.unwrapped.instructions == "Guess the number." and env.unwrapped.splits == ("train", "test")
    env.close()


@pytest.mark.parametrize("of_one_turn", [False, True])
def test_check_and_evaluation_play_a_package(package, of_one_turn, tmp_path):
    name = package("sum_in", PLAIN.replace("BODY", REWARD)) if of_one_turn else package("guess_in", GUESS)
    checked = manyturn("check", name, "--samples", 3)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    line = manyturn("evaluate", "random", "--env", name, "--split", "train", "--limit", 3, "--out", tmp_path / "out")
    assert line.returncode == 0, line.stdout + line.stderr


def test_an_exported_environment_comes_back_as_it_was(command, tmp_path, monkeypatch):
    name, world = installed(
        command, "manyturn/Desk-v0", tmp_path, "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]'
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    there = mt.make(f"verifiers:{name}", taskset={"split": "test"})
    here = mt.make("manyturn/Desk-v0")
    for number, task in enumerate(world.tasks("test")):
        text, _ = here.reset(seed=episode_seed(task), options={"task": task.id})
        texts, actions, total, over = [text], [], 0.0, False
        while not over:
            actions.append(here.unwrapped.expert().strip())
            text, reward, terminated, truncated, _ = here.step(actions[-1])
            texts, total, over = [*texts, text], total + reward, terminated or truncated
        found = played(there, f"test/{number}", actions)
        assert found[0][:-1] == texts[:-1] and found[1] == pytest.approx(total - 0.01 * len(actions))
    there.close()


def test_what_is_cut_off_is_judged_as_it_is(package):
    env = mt.make(package("guess_in", GUESS), max_turns=2)
    env.reset(seed=0, options={"task": "train/0"})
    assert env.step("1")[2:4] == (False, False)
    text, reward, terminated, truncated, info = env.step("2")
    assert (text, terminated, truncated) == ("It is not 2.", False, True)
    assert reward == 0.25 and info["success"] is False
    env.close()


def test_a_crash_of_the_package_is_no_reward(package):
    env = mt.make(package("guess_in", GUESS))
    env.reset(seed=0, options={"task": "train/0"})
    with pytest.raises(OSError, match="the game crashed"):
        env.step("crash")
    env.reset(seed=0, options={"task": "train/0"})
    assert env.step("10")[2]
    env.close()
    env.close()


def test_episodes_side_by_side_do_not_meet(package):
    name = package("guess_in", GUESS)
    envs = [mt.make(name) for _ in range(8)]
    for number, env in enumerate(envs):
        env.reset(seed=0, options={"task": f"train/{number % 3}"})
    for number, env in enumerate(envs):
        assert env.step(str(number))[0] == f"It is not {number}."
    assert [env.step("11")[2] for env in envs] == [number % 3 == 1 for number in range(8)]
    for env in envs:
        env.close()


START = """
    async def start(self):
        import pathlib
        if not pathlib.Path("NAME").exists():
            raise OSError("the game's server did not start")

    async def run(self, task, agents):"""


def test_a_package_that_could_not_start_is_tried_again(package, tmp_path):
    there = tmp_path / "there"
    start = START.replace("NAME", str(there))
    env = mt.make(package("starting_in", GUESS.replace("    async def run(self, task, agents):", start.strip("\n"))))
    with pytest.raises(OSError, match="did not start"):
        env.reset(seed=0)
    there.touch()
    assert env.reset(seed=0)[0].startswith("It is from")
    env.close()


async def _inside(env: Any) -> str:
    return env.reset(seed=0)[0]


def test_it_plays_where_a_loop_runs_already(package):
    env = mt.make(package("guess_in", GUESS))
    assert asyncio.run(_inside(env)).startswith("It is from")
    env.close()


def test_nothing_judged_is_no_reward(package):
    env = mt.make(package("sum_in", PLAIN.replace("BODY", "pass")), size=2)
    assert len(env.unwrapped.tasks("train")) == 2
    assert env.reset(seed=0, options={"task": "train/1"})[0] == "Sum 1.\n\n1 + 1 = ?"
    reward = env.step("2")[1]
    assert reward != reward
    env.close()


SEATS = [f"    {name}: vf.AgentConfig = vf.AgentConfig()\n" for name in "ab"]
ROLES = f"class Two(vf.EnvConfig):\n{''.join(SEATS)}\n"
TWO = GUESS.replace("class GuessEnv(", f"{ROLES}class GuessEnv(").replace("vf.Env[GuessEnvConfig]", "vf.Env[Two]")
NEEDS = "\n    @vf.reward\n    async def looked(self, runtime) -> float:\n        return 1.0\n"
IMAGE = PLAIN.replace("vf.TaskData(prompt", "vf.TaskData(image='x', prompt").replace("BODY", REWARD)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (TWO, "it has the agents a, b, and one agent plays here"),
        (PLAIN.replace("BODY", NEEDS), "its rewards looked look into a runtime of verifiers"),
        (PLAIN.replace("BODY", "NEEDS_CONTAINER = True"), "its tasks need a container of verifiers"),
        (IMAGE, "it is played in an image of its own"),
        ("def load_environment(**words):\n    pass\n", "Packages made for verifiers before 0.4 have none"),
        ("import nothing_of_this_name\n", "imports nothing_of_this_name, which is missing"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(package, code, why):
    ended = manyturn("evaluate", "random", "--env", package("odd_in", code))
    assert ended.returncode == 2 and why in ended.stderr, ended.stderr


def test_judges_that_ask_a_model_are_refused(package):
    judges = '[{id = "reference"}]'
    name = package("sum_in", PLAIN.replace("BODY", REWARD))
    ended = manyturn(
        "evaluate", "random", "--env", name, "--env.args", f"{{taskset = {{task = {{judges = {judges}}}}}}}"
    )
    assert ended.returncode == 2 and "its judges ask a model" in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("verifiers:os", "no package os is installed"),
        ("verifiers:pytest", "does not ask for verifiers"),
        ("verifiers:textarena", "play a game as textarena:NAME"),
        ("verifiers:owner/thing@1", "names no package"),
        ("verifiers:", "names no package"),
        ("verifiers:../site/x", "names no package"),
    ],
)
def test_only_installed_packages_of_verifiers_are_imported(name, why, tmp_path):
    (tmp_path / "os.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    ended = manyturn("evaluate", "random", "--env", name)
    assert ended.returncode == 2 and why in ended.stderr, ended.stderr


def test_a_name_from_data_imports_nothing(package, tmp_path):
    from manyturn.envs.contract.registration.env_registry import is_only_by_hand

    assert is_only_by_hand(package("guess_in", GUESS))


def test_wrong_options_name_the_field(package):
    name = package("guess_in", GUESS)
    ended = manyturn("evaluate", "random", "--env", name, "--env.args.taskset.number", 3)
    assert ended.returncode == 2 and "guess_in refuses taskset.number" in ended.stderr, ended.stderr
