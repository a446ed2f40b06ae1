"""Every recorded turn of the original must come out byte for byte: goals, pages, what can be clicked, rewards."""

from collections.abc import Mapping
from typing import Any

import pytest

from manyturn.envs.shop.catalogue import Product
from manyturn.envs.shop.env import WebShop
from manyturn.envs.shop.goals import Goal
from manyturn.envs.shop.nouns import plain_nouns
from manyturn.envs.shop.official import OfficialShop, load
from manyturn.envs.shop.reward import Judge
from manyturn.envs.shop.session import Session
from manyturn.envs.shop.text import MODES

SEED = 7  # of the recorded runs


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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["synthetic", "human"])
def test_no_turn_differs_from_the_original(kind: str, mode: str, recorded, golden) -> None:
    transcripts = golden("webshop_transcripts")
    nouns, shop = recorded_nouns(golden), load(recorded, kind, SEED)
    assert len(shop.goals) == transcripts["meta"][kind]["n_goals"]
    chosen = [e for e in transcripts["episodes"] if (e["goal_kind"], e["mode"]) == (kind, mode)]
    assert chosen
    for episode in chosen:
        goal = goal_of(shop, episode)
        judge = Judge(goal, lambda title: nouns.get(title) or plain_nouns(title))

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
                assert reward(session.product, session.chosen) == pytest.approx(step["reward"], abs=1e-9)
            else:
                assert list(session.clickables) == step["available"]["clickables"], step["action"]


def test_the_environment_pays_what_the_original_paid(recorded, golden) -> None:
    """With plain nouns: one recorded purchase of 66 has another factor."""
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
                paid.append(reward == pytest.approx(step["reward"], abs=1e-9))
                assert info["success"] == (reward == 1.0)
            else:
                assert reward == 0.0
    assert len(paid) > 40 and sum(paid) >= len(paid) - 1
