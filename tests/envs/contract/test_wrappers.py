"""Turn-level rewards: parts must go on summing to the reward, and a wrapper without effect must say so."""

import itertools
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.wrappers import reward_wrapper
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward, WrapperMismatch, plain_wrappers, wrap
from manyturn.envs.hosting.handle.env_handle import EnvHandle

pytestmark = pytest.mark.versions

HERE = Path(__file__).parents[1]
SOUND = f"{HERE / 'broken.py'}:Sound"
FAULTY = f"{HERE / 'faulty.py'}:Faulty"
GUESS = "manyturn/GuessNumber-v0"
ALL = [
    {"name": "turn_cost", "cost": 0.01},
    {"name": "progress_reward", "gamma": 0.9, "scale": 2.0},
    {"name": "progress_gain", "scale": 0.25},
]


def play(env, task: str, actions: list[str]) -> list[tuple]:
    env.reset(seed=3, options={"task": task})
    turns = []
    for action in actions:
        turns.append(env.step(action))
        if turns[-1][2] or turns[-1][3]:
            break
    return turns


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["nonsense", *"0123456789"]), min_size=1, max_size=8), st.permutations(ALL))
def test_parts_sum_to_the_reward_in_every_order_of_wrappers(actions, wrappers):
    for _, reward, terminated, truncated, info in play(wrap(make(SOUND), wrappers), "test/3", actions):
        assert reward == pytest.approx(sum(info["reward_parts"].values()))
        assert ("outcome" in info["reward_parts"]) == terminated
        assert {"turn", "progress", "progress_gain"} <= set(info["reward_parts"])
        assert not (terminated and truncated)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_shaping_telescopes_to_the_same_sum_whatever_the_policy_does(gamma):
    env = wrap(make(SOUND), [{"name": "progress_reward", "gamma": gamma, "scale": 2.0}])
    code = [str(digit) for digit in env.unwrapped.find("test/0").params["code"]]
    wrong = str((int(code[1]) + 1) % 10)
    ways = [code, [code[0], wrong], ["no"] * 6, [code[0], code[1], *["no"] * 4]]  # won, lost, cut short twice
    for actions in ways:
        turns = play(env, "test/0", actions)
        assert turns[-1][2] or turns[-1][3]
        total = sum(gamma**k * info["reward_parts"]["progress"] for k, (*_, info) in enumerate(turns))
        assert total == pytest.approx(0.0)  # progress is 0 at the start


def test_a_gain_is_paid_once_and_for_good_whatever_comes_after_it():
    env = wrap(make(SOUND), [{"name": "progress_gain", "scale": 0.5}])
    code = [str(digit) for digit in env.unwrapped.find("test/0").params["code"]]
    wrong = str((int(code[1]) + 1) % 10)
    for actions in (code, [code[0], wrong], ["no"] * 6, [code[0], code[1], *["no"] * 4]):  # won, lost, cut short twice
        turns = play(env, "test/0", actions)
        assert turns[-1][2] or turns[-1][3]
        paid, reached, expected = [turn[4]["reward_parts"]["progress_gain"] for turn in turns], 0.0, list[float]()
        for *_, info in turns:
            expected.append(0.5 * max(0.0, info["progress"] - reached))
            reached = max(reached, info["progress"])
        assert paid == pytest.approx(expected)
        assert sum(paid) == pytest.approx(0.5 * reached)


def test_shaping_keeps_the_order_of_policies_of_a_small_environment():
    bare, shaped = make(GUESS), wrap(make(GUESS), ["progress_reward"])
    task = bare.unwrapped.tasks("test")[0]
    low = task.params["low"]
    gaps = set()
    for first, second in itertools.product(range(low, low + 15, 5), repeat=2):
        actions = [f"guess {first}", f"guess {second}", f"guess {task.params['secret']}", *["pass"] * 5]
        returns = [sum(turn[1] for turn in play(env, task.id, actions)) for env in (bare, shaped)]
        gaps.add(round(returns[0] - returns[1], 9))
    assert len(gaps) == 1


def test_every_wrapper_says_whether_and_why_it_preserves_the_optimal_policy():
    for name in WRAPPERS.names():
        cls = WRAPPERS.entry(name).function
        assert issubclass(cls, TurnReward) and isinstance(cls.preserves_optimal_policy, bool), name
        doc = " ".join((cls.__doc__ or "").split())
        negated = "not preserve the optimal policy" in doc
        assert negated != cls.preserves_optimal_policy and "the optimal policy" in doc, name


def test_a_restored_episode_is_shaped_as_the_original():
    env, other = (wrap(make(SOUND), ALL) for _ in range(2))
    digit = str(env.unwrapped.find("test/0").params["code"][0])
    play(env, "test/0", [digit])
    other.reset(seed=9)
    other.restore(env.snapshot())
    assert env.step("no") == other.step("no")


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ({"name": "turn_costs"}, "did you mean 'turn_cost'"),
        ({"coef": 1.0}, "names no wrapper: give a name of adviser, .*progress_gain"),
        ({"name": "turn_cost", "costs": 0.1}, "did you mean 'cost'"),
        ({"name": "turn_cost", "cost": 0.0}, "turn_cost.cost: Input should be greater than 0"),
        ({"name": "progress_reward", "scale": float("nan")}, "progress_reward.scale: Input should be a finite number"),
        ({"name": "progress_reward", "gamma": 1.5}, "less than or equal to 1"),
    ],
)
def test_a_misspelt_or_useless_option_is_refused_when_the_environment_is_made(wrapper, message):
    with pytest.raises(ValueError, match=message):
        EnvHandle(SOUND, None, [wrapper])


def test_what_goes_to_a_worker_and_into_a_summary_is_plain_and_complete():
    table = {"name": "turn_cost", "cost": 0.01}
    for value in ("turn_cost", {"name": "turn_cost"}, WRAPPERS.parse("turn_cost")):
        assert plain_wrappers([value]) == [table] == json.loads(json.dumps(plain_wrappers([value])))


def test_the_example_of_the_module_is_a_wrapper(tmp_path):
    _, example = (reward_wrapper.__doc__ or "").split("::\n")
    imports = (
        "from typing import Literal\nimport gymnasium\nfrom pydantic import Field\n"
        "from manyturn.envs.contract.options.registry import Named\n"
        "from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward\n"
    )
    use = (
        "from manyturn.envs.contract.registration.env_registry import make\n"
        "from manyturn.envs.contract.wrappers.reward_wrapper import wrap\n"
        f"env = wrap(make({SOUND!r}), [{{'name': 'early', 'bonus': 0.25}}])\n"
        "env.reset(seed=3, options={'task': 'test/0'})\n"
        "while True:\n"
        "    *_, terminated, truncated, info = env.step('9')\n"
        "    if terminated or truncated:\n"
        "        break\n"
        "print(info['turn'], info['reward_parts']['early'])\n"
    )
    (tmp_path / "early.py").write_text(imports + textwrap.dedent(example) + use)
    found = subprocess.run([sys.executable, tmp_path / "early.py"], capture_output=True, text=True, check=False)
    turn, bonus = found.stdout.split() or (found.stderr, "")
    assert int(turn) < 5 and bonus == "0.25"


def test_shaping_without_progress_names_the_mend():
    env = wrap(make(f"{HERE / 'faulty.py'}:Stranger"), ["progress_reward"])
    with pytest.raises(WrapperMismatch, match=r"override progress\(\)"):
        env.reset(seed=0)


def test_one_part_is_not_counted_twice():
    with pytest.raises(WrapperMismatch, match="'turn' already"):
        play(wrap(make(SOUND), [ALL[0], ALL[0]]), "test/0", ["0"])


def test_a_raw_foreign_environment_is_refused_with_the_mend():
    env = wrap(make(f"{HERE / 'faulty.py'}:Stranger"), [ALL[0]])
    env.reset(seed=0)
    with pytest.raises(WrapperMismatch, match="GymnasiumAdapter"):
        env.step("abc")
