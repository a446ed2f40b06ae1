"""Parts of somebody else's package: each must be found by its name alone, by every command and every worker."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import plugin_package
import pytest
from transformers import AutoTokenizer

from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.trainers.record.run_folder import read_metrics

HERE = Path(__file__).parent
SIX = (HERE / "six_parts.py").read_text(encoding="utf-8")
DOORS = (HERE.parent / "trainers" / "doors.py").read_text(encoding="utf-8")
RECIPE = """
steps = 2
device = "cpu"
model = "narrow"
loggers = ["note"]
[env]
wrappers = [{name = "haste", bonus = 0.25}]
workers = 1
[agent]
instructions = false
format = {name = "loud", mark = "?"}
context = "forgetful"
[credit]
advantage = {name = "lateness", scale = 2.0}
[sampling]
max_tokens = 6
[warmup]
episodes = 24
must_succeed = false
max_updates = 24
check_every = 12
check_episodes = 4
[rollout]
tasks = 4
group = 2
[evaluation]
limit = 4
"""
Manyturn = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, forked) -> tuple[Path, Manyturn]:
    """A folder with a run of all six parts, and the command line in it, with or without their package."""
    folder = tmp_path_factory.mktemp("six")
    site = plugin_package.install(folder / "site", "six_parts", SIX)
    (folder / "doors.py").write_text(DOORS)
    (folder / "recipe.toml").write_text(RECIPE)

    def environment(*sites: Path) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, sites), os.environ.get("PYTHONPATH", "")])}

    def run(*words: object, installed: bool = True) -> subprocess.CompletedProcess[str]:
        return forked("-m", "manyturn", *words, cwd=folder, env=environment(site) if installed else environment())

    # Nothing has been imported when this process loads the package.
    train = [sys.executable, "-m", "manyturn", "train", "doors.py:Doors", "--recipe", "recipe.toml", "--out", "run"]
    words = [*train, "--model.width", "24"]
    ended = subprocess.run(words, env=environment(site), cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder, run


def turns(folder: Path) -> list[dict]:
    return [row for file in sorted(folder.glob("run/turns/*.parquet")) for row in read_turns(file)]


@pytest.mark.deep
def test_a_reward_wrapper_pays_in_the_worker(trained):
    rows = turns(trained[0])
    assert {row["turn"] for row in rows} > {0, 1}
    begun = set()
    for row in (row for row in rows if not row["cut"]):  # a cut reply is no turn of the environment's
        episode = row["stage"], row["task"], row["member"]
        assert dict(row["reward_parts"])["haste"] == (0.0 if episode in begun else 0.25)
        begun.add(episode)


def test_a_reply_format_says_which_action_is_meant(trained):
    rows = turns(trained[0])
    assert all(row["action"] == "" for row in rows if row["cut"])
    rows = [row for row in rows if not row["cut"]]
    assert any(row["action"] != row["reply"] for row in rows)
    for row in rows:
        assert row["action"] == row["reply"].removesuffix("?").lower()
        assert row["reply"].endswith("?") or not row["format_valid"]


def test_a_context_decides_what_a_prompt_holds(trained):
    folder, _ = trained
    template = ChatTemplate(AutoTokenizer.from_pretrained(folder / "run" / "checkpoints" / "step_000002" / "model"))
    last = {(row["stage"], row["task"], row["member"]): row["observation"] for row in turns(folder)}
    rows = [row for file in sorted(folder.glob("run/episodes/*.parquet")) for row in read_episodes(file)]
    assert len(rows) == 16 and any(row["turns"] > 1 for row in rows)
    for row in rows:
        shown = template.conversation("SHOUT!", [], last[row["stage"], row["task"], row["member"]])
        assert row["last_prompt_tokens"] == len(shown)


def test_a_model_is_built_with_its_options_and_the_environments_words(trained):
    model = trained[0] / "run" / "checkpoints" / "step_000002" / "model"
    config = json.loads((model / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"]) == (24, 1)
    assert "RED" in json.dumps(json.loads((model / "tokenizer.json").read_text())["model"]["vocab"])


def test_a_logger_hears_the_whole_run(trained):
    run = trained[0] / "run"
    first, *lines, last = (run / "notes.txt").read_text().splitlines()
    assert lines == [f"{line['phase']} {line['step']}" for line in read_metrics(run)] and lines[-1] == "train 2"
    summary = json.loads((run / "summary.json").read_text())
    assert (first, last) == ("model narrow", f"after {summary['after']['success']}")


def test_an_advantage_is_what_the_policy_learns_from(trained):
    rows = turns(trained[0])
    assert rows and all(row["advantage"] == 2.0 * row["turn"] for row in rows)


@pytest.mark.deep
def test_the_run_is_evaluated_with_its_parts_and_without_them_the_missing_one_is_named(trained):
    _, run = trained
    ended = run("evaluate", "run", "--limit", 2, "--repeats", 1)
    assert ended.returncode == 0 and "rewards are those with haste" in ended.stdout, ended.stderr
    refused = run("evaluate", "run", "--limit", 2, installed=False)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    for name in ("haste", "narrow", "loud", "forgetful", "lateness", "note"):
        assert f"'{name}'" in refused.stderr, refused.stderr
