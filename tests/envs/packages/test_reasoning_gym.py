"""``reasoning-gym:NAME``: answers that run as code, a score for garbage, other questions in another process."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.envs.contract.registration.env_registry import UnknownEnv
from manyturn.envs.hosting.handle.env_handle import EnvHandle

if find_spec("reasoning_gym") is None:
    pytest.skip("no datasets: pip install 'manyturn[reasoning-gym]'", allow_module_level=True)

from reasoning_gym.factory import DATASETS

from manyturn.envs.packages.reasoning_gym_datasets import READ, refusal

pytestmark = pytest.mark.versions

FEW = ("count_bits", "shortest_path")
RUN = "__import__('os').system('touch RAN')"
HOSTILE = (
    *("", " ", "zz", "nan", "NaN", "inf", "1e999999999", "-1e-999999999", "1/0", "[]", "{}", "()", "[NaN]", "[[NaN]]"),
    *('{"a": 1}', '{"a": [1]}', "null", "[{}]", "[[[]]]", ",", "=", "A=1", "A+999999999", "R999999999", "\ud800", "²"),
    *("9" * 9000, "(" * 9000, "[" * 9000, "\n" * 9000, RUN, f"[{RUN}]", "x" * 100_000),
)
QUESTIONS = """
import sys
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.contract.random_keys import digest
for name in sys.argv[1].split():
    handle = EnvHandle(f"reasoning-gym:{name}", {"size": 30})
    tasks = handle.tasks("train")[:30]
    print(name, digest([(handle.reset(task, seed=1).observation, handle.expert()) for task in tasks]))
"""


def judged(names: tuple[str, ...]) -> None:
    for name in names:
        handle = EnvHandle(f"reasoning-gym:{name}", {"size": 20})
        for task in handle.tasks("train")[:3]:
            handle.reset(task, seed=0)
            right = handle.expert()
            end = handle.step(right)
            assert end.terminated and end.success and end.reward == 1 and end.parts == {"outcome": 1.0}, (name, right)
            for answer in HOSTILE:
                handle.reset(task, seed=0)
                end = handle.step(answer)
                assert end.terminated and not end.success and 0 <= end.reward < 1, (name, answer[:40], end)


def processes(names: tuple[str, ...]) -> list[str]:
    """What processes that hash texts differently say of the questions."""
    words = [sys.executable, "-c", QUESTIONS, " ".join(names)]
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "77", "4")]
    return [subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout for env in environments]


def test_an_answer_that_is_garbage_or_code_is_never_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged(FEW)
    assert not (tmp_path / "RAN").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_dataset_takes_garbage_or_code_for_an_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged(tuple(sorted(READ)))
    assert not (tmp_path / "RAN").exists()


@pytest.mark.deep
def test_another_process_asks_the_same_questions():
    one, *others = processes(FEW)
    assert others == [one, one] and one.count("\n") == len(FEW)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_dataset_asks_other_questions_in_another_process():
    one, *others = processes(tuple(sorted(READ)))
    assert others == [one, one] and one.count("\n") == len(READ)


def test_a_dataset_whose_scorer_was_not_read_is_refused_by_name():
    assert DATASETS.keys() > READ
    for name in DATASETS.keys() - READ:
        with pytest.raises(UnknownEnv, match=name):
            mt.make(f"reasoning-gym:{name}")
    assert "eval" in str(refusal("spiral_matrix")) and "sympy" in str(refusal("countdown"))
    with pytest.raises(UnknownEnv, match="did you mean leg_counting"):
        mt.make("reasoning-gym:leg_cunting")


def questions(handle: EnvHandle, split: str) -> list[str]:
    return [handle.reset(task, seed=0).observation for task in handle.tasks(split)]


def test_items_are_those_of_the_package_but_for_questions_of_other_splits():
    dataset = DATASETS["leg_counting"][0](DATASETS["leg_counting"][1](seed=7, size=50, max_animals=4))
    handle = EnvHandle("reasoning-gym:leg_counting", {"seed": 7, "size": 50, "config": {"max_animals": 4}})
    tasks = handle.tasks("train")
    assert len(tasks) == 50 and tasks[49].id == "train/7/49"
    pairs = zip(questions(handle, "train"), (item["question"] for item in dataset), strict=True)
    assert 35 <= sum(one == other for one, other in pairs) <= 45  # a fifth of all questions is held out
    with pytest.raises(ValueError, match="max_animals"):
        mt.make("reasoning-gym:leg_counting", config={"max_animal": 4})
    with pytest.raises(ValueError, match="refuses its options"):
        mt.make("reasoning-gym:leg_counting", config={"max_animals": -1})


@pytest.mark.parametrize("name", ["aiw", "gsm_symbolic"])
def test_no_held_out_question_is_a_question_of_training(name):
    """Of aiw's 200 held-out questions 15 stood in training: several seeds draw the same one."""
    handle = EnvHandle(f"reasoning-gym:{name}", {"size": 400})
    train, validation, test = (set(questions(handle, split)) for split in ("train", "validation", "test"))
    assert train.isdisjoint(test) and train.isdisjoint(validation) and validation.isdisjoint(test)
    assert min(map(len, (train, validation, test))) > 50


@pytest.mark.deep
def test_the_command_line_checks_evaluates_and_pins_it(command, tmp_path):
    name = "reasoning-gym:leg_counting"
    found = command("check", name, "--samples", 2)
    assert found.code == 0, found.out + found.err
    panel = tmp_path / "panel.json"
    assert command("panel", "make", name, "--limit", 4, "--out", panel).code == 0
    for policy, reward in (("random", 0), ("expert", 1)):  # a panel names a package, so nothing is given by hand
        found = command("evaluate", policy, "--panel", panel, "--out", tmp_path / policy)
        assert found.code == 0, found.out + found.err
        rows = read_episodes(tmp_path / policy / "episodes.parquet")
        assert [row["success"] for row in rows] == [bool(reward)] * 4


@pytest.mark.deep
def test_a_policy_is_trained_on_it(forked, tmp_path):
    words = (
        "train reasoning-gym:count_bits --steps 1 --rollout.tasks 2 --rollout.group 2 --warmup.episodes 8 "
        "--warmup.max_updates 2 --warmup.must_succeed false --evaluation.limit 2 --out run"
    )
    ended = forked("-m", "manyturn", *words.split(), cwd=tmp_path, env=dict(os.environ))
    assert ended.returncode == 0, ended.stderr
