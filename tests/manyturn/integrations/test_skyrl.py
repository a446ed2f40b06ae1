"""An exported package in the real skyrl-gym: other turns than ours, faults that count as rewards, limits that are lost.

SkyRL's trainer is not run here. What its generator calls is: ``make`` with a row as ``extras``, ``init`` and ``step``.
"""

import pytest
from expert_episode import episode  # pyright: ignore[reportMissingImports]
from needs_host import host  # pyright: ignore[reportMissingImports]
from served import FAULTY, UNSCORABLE  # pyright: ignore[reportMissingImports]

from manyturn.envs.contract.tasks.panel import PanelError
from manyturn.envs.hosting.handle.env_handle import EnvError


@pytest.fixture(autouse=True)
def _skyrl() -> None:
    host("skyrl_gym")


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_it_plays_our_episodes(env, exported_skyrl):
    package = exported_skyrl(env, "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    assert len(package.rows) == 3
    for number, (row, task) in enumerate(zip(package.rows, package.world.tasks("test"), strict=True)):
        actions, steps = episode(package.world, task, bool(number % 2))
        theirs = package.made(row)
        first, info = theirs.init(row["prompt"])
        assert first == row["prompt"] and first[-1]["content"] == steps[0].observation and info["task"] == task.id
        for action, step in zip(actions, steps[1:], strict=True):
            told = theirs.step(f" {action}\n")
            assert (told["reward"], told["done"]) == (step.reward, step.ended)
            assert told["metadata"]["reward_parts"] == dict(step.parts) and told["metadata"]["anchor"] == step.anchor
            seen = [] if step.ended else [{"role": "user", "content": step.observation}]
            assert told["observations"] == seen and told["postprocessed_action"] is None
        figures = theirs.get_metrics()
        assert figures["success"] == 1.0 and figures["turns"] == len(actions) and figures["invalid"] == number % 2
        theirs.close()


def test_the_generators_limit_of_turns_truncates(exported_skyrl):
    package = exported_skyrl("manyturn/Household-v0")
    theirs = package.made(package.rows[0], max_turns=2)
    theirs.init(package.rows[0]["prompt"])
    assert not theirs.step("look")["done"]
    last = theirs.step("look")
    assert last["done"] and last["metadata"]["truncated"] and last["observations"] == []


@pytest.mark.parametrize(
    ("env", "action", "cause"), [(FAULTY, "raise", "broken on purpose"), (UNSCORABLE, "win", "is not known")]
)
def test_neither_a_fault_nor_an_unknown_reward_is_a_reward(exported_skyrl, env, action, cause):
    package = exported_skyrl(env)
    theirs = package.made(package.rows[0])
    theirs.init(package.rows[0]["prompt"])
    with pytest.raises(EnvError, match=cause):
        while not theirs.step(action)["done"]:
            pass


def test_a_row_of_another_export_is_refused(exported_skyrl):
    package = exported_skyrl("manyturn/Maze-v0")
    for changes in ({"content": "0" * 32}, {"task": "test/easy/none"}):
        with pytest.raises(PanelError, match="is none of this export"):
            package.made(package.rows[0], **changes)
    with pytest.raises(ValueError, match="the row lacks content, seed, split, task"):
        package.made({"env_class": package.rows[0]["env_class"]})


def test_the_rows_are_read_as_skyrl_reads_them(exported_skyrl, tmp_path):
    from datasets import load_dataset

    package = exported_skyrl("manyturn/Maze-v0")
    file = str(tmp_path / "package" / "data" / "test.jsonl")
    rows = load_dataset("json", data_files=file, cache_dir=str(tmp_path / "cache"))["train"].to_list()
    assert rows == package.rows
    assert package.made(rows[0]).init(rows[0]["prompt"])[0] == rows[0]["prompt"]
