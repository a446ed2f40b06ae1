"""The made shop must be solvable at every difficulty, not by luck, and its turn-level rewards must add nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.shop.generated.env import Shop
from manyturn.envs.shop.generated.goal_generator import LEVELS
from manyturn.envs.shop.generated.shaping import PARTS

ID = "manyturn/Shop-v0"
LEVEL = st.sampled_from(list(LEVELS))
CHOICES = st.lists(st.integers(0, 99), max_size=20)


def play(env: Shop, choices: list[int]) -> list[tuple]:
    """Steps of a policy that now follows the expert, now clicks by lot, now searches for something else."""
    record: list[tuple] = []
    for choice in choices:
        listed = env.admissible()
        clicks = [action for action in listed if action != "click[buy now]"] or listed
        action = "search[handmade]" if choice > 90 else env.expert() if choice < 30 else clicks[choice % len(clicks)]
        record.append(env.step(action))
        if record[-1][2] or record[-1][3]:
            break
    return record


def test_the_conformance_check_passes() -> None:
    kwargs = {"difficulty": "medium", "products": 100, "mode": "text_rich", "rewards": "shaped"}
    report = check(ID, kwargs, samples=3)
    assert report.passed, str(report)


@pytest.mark.parametrize("level", LEVELS)
def test_the_expert_buys_what_is_wanted_and_chance_does_not(level: str) -> None:
    env, lucky = Shop(difficulty=level), 0
    rng = generator("by chance", level)
    for split in env.splits:
        for task in env.tasks(split)[:15]:
            env.reset(seed=0, options={"task": task})
            ended = False
            while not ended:
                _, reward, terminated, truncated, info = env.step(env.expert())
                ended = terminated or truncated
            assert info["success"] and reward == 1.0, task.id
            _, info = env.reset(seed=0, options={"task": task})
            while "success" not in info:
                *_, info = env.step(info["admissible"][int(rng.integers(len(info["admissible"])))])
            lucky += info["success"]
    assert lucky <= 0.1 * 60


@settings(max_examples=40, deadline=None)
@given(LEVEL, st.integers(0, 2**40), CHOICES)
def test_the_expert_finds_its_way_from_anywhere(level: str, seed: int, choices: list[int]) -> None:
    env = Shop(difficulty=level, max_turns=50)
    env.reset(seed=seed)
    record = play(env, choices)
    while not (record and (record[-1][2] or record[-1][3])):
        record.append(env.step(env.expert()))
    assert record[-1][2]


@pytest.mark.parametrize("per_page", [1, 3, 50])
def test_pages_of_any_length_lead_to_the_product(per_page: int) -> None:
    env = Shop(difficulty="medium", per_page=per_page, max_turns=40)
    for seed in range(10):
        env.reset(seed=seed)
        record = [env.step(env.expert())]
        clicks = [action for action in env.admissible() if action[6:-1] in env._catalogue.index.ids]
        assert 1 <= len(clicks) <= per_page
        while not record[-1][2]:
            record.append(env.step(env.expert()))
        assert record[-1][-1]["success"]


@pytest.mark.parametrize("per_page", [0, 51])
def test_a_page_that_cannot_be_is_told(per_page: int) -> None:
    with pytest.raises(ValueError, match="per_page"):
        Shop(per_page=per_page)


@settings(max_examples=40, deadline=None)
@given(LEVEL, st.integers(0, 2**40), CHOICES, st.integers(1, 20))
def test_shaped_parts_sum_to_nothing_however_the_episode_goes(
    level: str, seed: int, choices: list[int], turns: int
) -> None:
    env = Shop(difficulty=level, rewards="shaped", max_turns=turns)
    env.reset(seed=seed)
    record = play(env, choices)
    while not (record[-1][2] or record[-1][3] if record else False):
        record.append(env.step(env.expert()))
    for name in PARTS:
        assert sum(step[-1]["reward_parts"].get(name, 0.0) for step in record) == pytest.approx(0.0)


def test_the_experts_turns_are_paid_as_they_come_nearer() -> None:
    env, plain = Shop(rewards="shaped"), Shop()
    assert env.part_names == PARTS and plain.part_names == ()
    task = next(task for task in env.tasks("train") if len(task.params["options"]) == 2)
    env.reset(seed=0, options={"task": task})
    paid = []
    while "success" not in env.step(env.expert())[-1]:
        paid.append(env._actions[-1])
    env.reset(seed=0, options={"task": task})
    parts = [env.step(action)[-1]["reward_parts"] for action in [*paid, "click[buy now]"]]
    assert [set(part) for part in parts] == [{"found"}, {"opened"}, {"chosen"}, {"chosen"}, {"outcome", *PARTS}]
    assert [part.get(name) for part, name in zip(parts[:4], ("found", "opened", "chosen", "chosen"), strict=True)] == (
        pytest.approx([0.1, 0.2, 0.1, 0.1])
    )
    assert parts[4] == pytest.approx({"outcome": 1.0, "found": -0.1, "opened": -0.2, "chosen": -0.2})


@settings(max_examples=30, deadline=None)
@given(LEVEL, st.integers(0, 2**40), CHOICES, CHOICES)
def test_a_snapshot_continues_as_if_nothing_had_happened(
    level: str, seed: int, before: list[int], after: list[int]
) -> None:
    env, fresh = (Shop("test", level, rewards="shaped", max_turns=60) for _ in range(2))
    env.reset(seed=seed)
    record = play(env, before)
    data = env.snapshot()
    fresh.restore(data)
    assert fresh.snapshot() == data
    if not (record and record[-1][2]):
        assert play(fresh, after) == play(env, after)


def test_two_instances_share_one_catalogue() -> None:
    one, other = Shop(products=50), Shop("test", "hard", products=50)
    one.reset(seed=0), other.reset(seed=1)
    assert one._catalogue is other._catalogue


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"difficulty": "huge"}, "tiny, easy, medium, hard, extreme"),
        ({"rewards": "dense"}, "outcome or shaped"),
        ({"mode": "html"}, "text, text_rich"),
        ({"split": "dev"}, "test_unseen"),
        ({"products": 51}, "multiple of 5"),
        ({"difficulty": "extreme", "products": 100}, "at least 1000 products"),
        ({"max_turns": 0}, "at least 1"),
    ],
)
def test_a_wrong_option_names_the_right_ones(kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shop(**kwargs)
