"""Every recorded turn of the original must come out byte for byte: goals, pages, what can be clicked, rewards."""

from collections.abc import Mapping
from typing import Any

import pytest
from needs import absent
from needs_files import NO_GOLDEN

from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.pages.page_text import MODES
from manyturn.envs.shop.pages.session import Session
from manyturn.envs.shop.reward.nouns import plain_nouns
from manyturn.envs.shop.reward.reward import Judge
from manyturn.envs.shop.webshop.official_shop import OfficialShop, load
from manyturn.envs.shop.webshop_env import WebShop

SEED = 7  # of the recorded runs
FACTORS = (0.0, 0.1, 0.5, 1.0)


def recorded_nouns(golden) -> dict[str, tuple[str, ...]]:
    found = {}
    for case in golden("webshop_reward_cases")["cases"]:
        found[case["product"]["name"]] = tuple(case["purchased_nouns"])
        found[case["goal"]["name"]] = tuple(case["desired_nouns"])
    return found


def goal_of(shop: OfficialShop, episode: Mapping[str, Any]) -> Goal:
    goal, recorded = shop.goals[episode["goal_index"]], episode["goal"]
    options = recorded["goal_options"]
    assert goal.product.id == recorded["asin"] and goal.instruction == recorded["instruction_text"]
    assert list(goal.attributes) == recorded["attributes"] and goal.price_limit == recorded["price_upper"]
    assert goal.options == tuple(options.items() if isinstance(options, dict) else options)
    return goal


def as_paid(reward: float, step: Mapping[str, Any]) -> bool:
    """Whether a purchase is worth what the original paid."""
    return reward == pytest.approx(step["reward"], abs=1e-9)


def like_paid(reward: float, step: Mapping[str, Any]) -> bool:
    """The same, but for the factor of the products' types: it follows from nouns, which may be others than recorded."""
    parts = step["reward_parts"]
    met = sum(parts.get(f"r_{part}", 0) * parts.get(f"w_{part}", 0) for part in ("att", "option", "price"))
    return any(reward == pytest.approx(met * factor, abs=1e-9) for factor in FACTORS)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["synthetic", "human"])
def test_no_turn_differs_from_the_original(kind: str, mode: str, recorded, golden) -> None:
    transcripts = golden("webshop_transcripts")
    nouns, shop = recorded_nouns(golden), load(recorded, kind, SEED)
    assert len(shop.goals) == transcripts["meta"][kind]["n_goals"]
    chosen = [e for e in transcripts["episodes"] if (e["goal_kind"], e["mode"]) == (kind, mode)]
    if not chosen:
        absent("GOLDEN", NO_GOLDEN)
    for episode in chosen:
        goal = goal_of(shop, episode)
        judge = Judge(goal, lambda title: nouns[title] if title in nouns else plain_nouns(title))

        def reward(product: Product, options: Mapping[str, str], judge: Judge = judge) -> float:
            return judge.score(product, options).official

        session = Session(shop.catalogue, goal.instruction, reward)
        assert MODES[mode](session.page) == episode["first_obs"]
        assert list(session.clickables) == episode["first_available"]["clickables"]
        for step in episode["steps"]:
            session.act(step["action"])
            assert MODES[mode](session.page) == step["obs"], step["action"]
            if step["done"]:
                bought = step["bought"]
                assert session.product is not None and session.product.id == bought["asin"]
                assert session.chosen == bought["options"] and session.product.price == bought["price"]
                recorded_titles = {session.product.title, goal.product.title} <= nouns.keys()
                paid = reward(session.product, session.chosen)
                assert as_paid(paid, step) if recorded_titles else like_paid(paid, step)
            else:
                assert list(session.clickables) == step["available"]["clickables"], step["action"]


def test_the_environment_pays_what_the_original_paid(recorded, golden) -> None:
    """With plain nouns, which give the recorded factor of nearly all purchases."""
    envs = {kind: WebShop("test", recorded, kind, original=SEED) for kind in ("synthetic", "human")}
    paid = []
    for episode in golden("webshop_transcripts")["episodes"]:
        env, number = envs[episode["goal_kind"]], episode["goal_index"]
        split = "test" if number < 500 else "validation" if number < 1500 else "train"
        env.reset(seed=0, options={"task": f"{split}/{episode['goal_kind']}-{SEED}/{number}"})
        for step in episode["steps"][: env.max_turns]:
            _, reward, terminated, _, info = env.step(step["action"])
            assert terminated == step["done"]
            if terminated:
                assert like_paid(reward, step)
                paid.append(as_paid(reward, step))
                assert info["success"] == (reward == 1.0)
            else:
                assert reward == 0.0
    assert paid and sum(paid) >= 0.95 * len(paid) - 1  # a few purchases say little
