"""Training of a reflector: what it earns, what a retry reads, and what is left of it after a kill."""

import asyncio
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs_endpoint import completion, endpoint_server, reading  # noqa: F401  a fixture
from short_runs import figures

from manyturn.agents.records.episode_rows import read_turns
from manyturn.envs.contract.options.overlay import overlay
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

ROOT = Path(__file__).parents[4]
ACTOR = ROOT / "tests" / "trainers" / "heedful_actor.py"
VAULTS = """
import manyturn as mt

SMELLS = {"red": "smoke", "blue": "salt", "green": "moss", "white": "snow"}

class Vaults(mt.TextEnv):
    instructions = "Open the vault. A wrong pull locks it."
    max_turns = 1

    def tasks(self, split):
        first = 400 * self.splits.index(split)
        numbers = range(first, first + 400)
        return [mt.Task(f"{split}/{n}", split, {"n": n, "right": list(SMELLS)[n % 4]}) for n in numbers]

    def begin(self, task, rng):
        return "A vault with four levers."

    def respond(self, action):
        right = self.task.params["right"]
        if action == f"pull {right}":
            return self.succeed("Open.")
        return self.fail(f"Locked. It smells of {SMELLS[right]}.")  # only the failed attempt knows this

    def admissible(self):
        return [f"pull {colour}" for colour in SMELLS]

    def expert(self):
        return f"pull {self.task.params['right']}"
"""


def training(tmp_path, **options):
    """Words that train a reflector of the heedful actor by the recipe, in the vaults."""
    (tmp_path / "vaults.py").write_text(VAULTS)
    given = {"env.id": f"{tmp_path}/vaults.py:Vaults", "env.wrappers": '[{name = "reflector"}]'}
    given |= {"roles.actor": f"{ACTOR}:actor", "roles.retry": f"{ACTOR}:actor", "model.sample_tasks": 40}
    given |= {"agent.max_context": 200, "evaluation.limit": 100, "warmup.episodes": 200, "warmup.max_updates": 30}
    given |= {"warmup.check_every": 30, **options}
    return ("train", "--recipe", "retroformer-tiny", *(word for name in given for word in (f"--{name}", given[name])))


@pytest.mark.deep
def test_a_reflector_that_learns_from_the_difference_lifts_an_actor_that_does_not_learn(command, tmp_path):
    """No step but the failed attempt names the lever, and the warm-up has taught the language only."""
    ended = command(*training(tmp_path, steps=20, **{"learner.lr": 2e-3}), "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    for before, after in (("before", "after"), ("before_greedy", "after_greedy")):
        assert summary[before]["ci_high"] < summary[after]["ci_low"], summary[after]
    assert set(summary["weights"]) == {"reflector"}


def test_a_retry_remembers_the_reflection_only_and_the_reflector_earns_the_difference(
    command,
    endpoint_server,  # noqa: F811
    tmp_path,
):
    def answer(request):
        last = request["messages"][-1]["content"]
        reflection = last.rpartition("Reflection: ")[2] if "Reflection: " in last else "pull red"
        return completion(f"<action>{reflection}</action>")

    endpoint_server.script = [reading(answer)]
    small = {"steps": 2, "checkpoint_every": 1, "rollout.tasks": 4, "rollout.group": 4, "evaluation.limit": 2}
    small |= {"warmup.episodes": 4, "warmup.max_updates": 1, "warmup.check_every": 1, "warmup.check_episodes": 1}
    small |= {"roles.actor": "openai:m", "roles.retry": "openai:m"}
    ended = command(*training(tmp_path, **small), "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    episodes: dict[Any, dict[str, Any]] = {}
    for file in sorted((tmp_path / "run" / "turns").glob("*.parquet")):
        for row in read_turns(file):
            episodes.setdefault((file.name, row["task"], row["member"]), {})[row["role"]] = row
    reflected = [turns for turns in episodes.values() if "reflector" in turns]
    assert 0 < len(reflected) < len(episodes), "an attempt that succeeds is not reflected on"
    for turns in reflected:
        assert turns["retry"]["action"] == turns["reflector"]["action"]
        parts = turns["retry"]["reward_parts"]
        assert parts["reflector.gain"] == parts["retry.outcome"] - 0.0 and not turns["actor"]["reward"]
        assert not np.isnan(turns["reflector"]["advantage"]) and np.isnan(turns["retry"]["advantage"])
    again = [
        r["body"]["messages"] for r in endpoint_server.requests if "Reflection" in r["body"]["messages"][-1]["content"]
    ]
    assert again and all(sum(one["role"] == "user" for one in messages) == 1 for messages in again)
    lines = read_metrics(tmp_path / "run")
    assert all(line["actor/return"] + line["reflector/return"] >= 0 for line in lines if line["phase"] == "train")


def test_a_run_that_is_killed_ends_with_the_same_bits(tmp_path):
    small = {"steps": 3, "checkpoint_every": 1, "rollout": {"tasks": 4, "group": 4}, "evaluation": {"limit": 4}}
    small |= {"warmup": {"episodes": 8, "max_updates": 1, "check_every": 1, "check_episodes": 1}}
    (tmp_path / "vaults.py").write_text(VAULTS)
    roles = {"reflector": "small", "actor": f"{ACTOR}:actor", "retry": f"{ACTOR}:actor"}
    world = {"env": {"id": f"{tmp_path}/vaults.py:Vaults", "wrappers": ["reflector"]}, "roles": roles}
    recipe = tomllib.loads((ROOT / "manyturn/recipes/retroformer-tiny.toml").read_text())
    config = configure(recipe, overlay(overlay(small, world), {"model": {"sample_tasks": 40}}))
    calm, killed = tmp_path / "calm", tmp_path / "killed"

    def copy_in_the_middle(line):
        if line["phase"] == "train" and line["step"] == 2:
            shutil.copytree(calm, killed)

    asyncio.run(train(config, calm, report=copy_in_the_middle))
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm)
