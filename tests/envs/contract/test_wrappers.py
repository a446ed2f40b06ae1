"""Turn-level rewards: parts must go on summing to the reward, and a wrapper without effect must say so."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.environments import make
from manyturn.envs.contract.wrappers import WRAPPERS, PartWeights, ProgressReward, WrapperMismatch, wrap
from manyturn.envs.hosting.host import Host

HERE = Path(__file__).parents[1]
SOUND = f"{HERE / 'broken.py'}:Sound"
FAULTY = f"{HERE / 'faulty.py'}:Faulty"
GUESS = "manyturn/GuessNumber-v0"
ALL = [
    {"name": "invalid_penalty", "coef": 0.1},
    {"name": "turn_cost", "cost": 0.01},
    {"name": "progress_reward", "gamma": 0.9, "scale": 2.0},
    {"name": "part_weights", "weights": {"outcome": 3.0, "turn": 0.5}},
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
@given(st.lists(st.sampled_from(["nonsense", *"0123456789"]), min_size=1, max_size=8), st.permutations(ALL[:3]))
def test_parts_sum_to_the_reward_in_every_order_of_wrappers(actions, wrappers):
    for _, reward, terminated, truncated, info in play(wrap(make(SOUND), [*wrappers, ALL[3]]), "test/3", actions):
        assert reward == pytest.approx(sum(info["reward_parts"].values()))
        assert ("outcome" in info["reward_parts"]) == terminated
        assert ("invalid" in info["reward_parts"]) == (not info["valid"])
        assert {"turn", "progress"} <= set(info["reward_parts"])
        assert not (terminated and truncated)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_shaping_telescopes_to_the_same_sum_whatever_the_policy_does(gamma):
    env = ProgressReward(make(SOUND), gamma=gamma, scale=2.0)
    code = [str(digit) for digit in env.unwrapped.find("test/0").params["code"]]
    wrong = str((int(code[1]) + 1) % 10)
    ways = [code, [code[0], wrong], ["no"] * 6, [code[0], code[1], *["no"] * 4]]  # won, lost, cut short twice
    for actions in ways:
        turns = play(env, "test/0", actions)
        assert turns[-1][2] or turns[-1][3]
        total = sum(gamma**k * info["reward_parts"]["progress"] for k, (*_, info) in enumerate(turns))
        assert total == pytest.approx(0.0)  # progress is 0 at the start


def test_shaping_keeps_the_order_of_policies_of_a_small_environment():
    bare, shaped = make(GUESS), ProgressReward(make(GUESS))
    task = bare.unwrapped.tasks("test")[0]
    low = task.params["low"]
    gaps = set()
    for first, second in itertools.product(range(low, low + 15, 5), repeat=2):
        actions = [f"guess {first}", f"guess {second}", f"guess {task.params['secret']}", *["pass"] * 5]
        returns = [sum(turn[1] for turn in play(env, task.id, actions)) for env in (bare, shaped)]
        gaps.add(round(returns[0] - returns[1], 9))
    assert len(gaps) == 1


def test_every_wrapper_says_whether_and_why_it_preserves_the_optimal_policy():
    for name, cls in WRAPPERS.items():
        assert isinstance(cls.preserves_optimal_policy, bool), name
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
        ({"name": "invalid_penality"}, "did you mean 'invalid_penalty'"),
        ({"coef": 1.0}, "unknown wrapper None"),
        ({"name": "turn_cost", "costs": 0.1}, "did you mean 'cost'"),
        ({"name": "part_weights"}, "needs the option 'weights'"),
        ({"name": "turn_cost", "cost": 0.0}, "no effect"),
        ({"name": "invalid_penalty", "coef": -1.0}, "above 0"),
        ({"name": "progress_reward", "scale": float("nan")}, "above 0"),
        ({"name": "progress_reward", "gamma": 1.5}, "above 1"),
        ({"name": "part_weights", "weights": {"outcome": 1.0}}, "no effect"),
        ({"name": "part_weights", "weights": {}}, "no effect"),
        ({"name": "part_weights", "weights": {"outcome": float("inf")}}, "'outcome' is inf"),
    ],
)
def test_a_misspelt_or_useless_option_is_refused_when_the_environment_is_made(wrapper, message):
    with pytest.raises(ValueError, match=message):
        Host(SOUND, None, [wrapper])


def test_a_weight_for_a_part_that_is_not_listed_is_refused_at_once():
    with pytest.raises(WrapperMismatch, match="'digits', but the reward parts seen are digit, invalid, outcome"):
        Host(SOUND, None, [ALL[0], {"name": "part_weights", "weights": {"digits": 2.0}}])
    Host(SOUND, None, [ALL[0], {"name": "part_weights", "weights": {"digit": 2.0, "invalid": 2.0}}])


def test_where_parts_are_not_listed_a_misspelt_weight_is_found_at_the_first_end():
    env = PartWeights(make(FAULTY), {"noises": 2.0})
    with pytest.raises(WrapperMismatch, match="noise, outcome"):
        play(env, "test/0", ["say", "win"])


def test_weights_that_never_had_an_effect_are_found_in_the_end_but_a_rare_part_is_not():
    never, rare = PartWeights(make(FAULTY), {"bonus": 2.0}), PartWeights(make(FAULTY), {"noise": 2.0, "bonus": 0.0})
    for _ in range(PartWeights.PATIENCE - 1):
        play(never, "test/0", ["win"])
    with pytest.raises(WrapperMismatch, match="part_names"):
        play(never, "test/0", ["win"])
    for _ in range(2 * PartWeights.PATIENCE):
        play(rare, "test/0", ["say", "win"])


def test_shaping_without_progress_names_the_mend():
    env = ProgressReward(make(f"{HERE / 'faulty.py'}:Stranger"))
    with pytest.raises(WrapperMismatch, match=r"override progress\(\)"):
        env.reset(seed=0)


def test_one_part_is_not_counted_twice():
    with pytest.raises(WrapperMismatch, match="'turn' already"):
        play(wrap(make(SOUND), [ALL[1], ALL[1]]), "test/0", ["0"])


def test_a_raw_foreign_environment_is_refused_with_the_mend():
    env = wrap(make(f"{HERE / 'faulty.py'}:Stranger"), [ALL[1]])
    env.reset(seed=0)
    with pytest.raises(WrapperMismatch, match="Foreign"):
        env.step("abc")
