"""Success in the made shop without comparing products: the floor that a learnt policy has to beat.

    python -m benchmarks.environments.shop_baselines

Two policies search for the whole instruction, open the first product and buy it: as it comes (``first hit``), or after
choosing what of its options stands in the instruction (``first hit, options``). Beside them chance and the expert. The
figures are the share of held-out goals that are bought exactly, reward 1, and the mean reward.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.shop.generated.env import Shop
from manyturn.envs.shop.generated.goal_generator import LEVELS
from manyturn.recipes import load_recipe

OUT = RESULTS / "shop_floors.json"
_BUTTONS = {"click[back to search]", "click[next >]", "click[< prev]"}
Policy = Callable[[Shop], str]


def first_hit(env: Shop, options: bool) -> str:
    """The action of a policy that reads nothing but words of the instruction."""
    instruction, actions = env.task.params["instruction"], env.admissible()
    if env.session.place == "home":
        return f"search[{instruction}]"
    if env.session.place == "results":
        return next((link for link in actions if link not in _BUTTONS), "click[back to search]")
    for axis, values in env.session.product.options.items() if options else ():
        named = [value for value in values if value in instruction]
        if named and axis not in env.session.chosen:
            return f"click[{max(named, key=len)}]"
    return "click[buy now]"


def chance(env: Shop) -> str:
    actions = env.admissible()
    draw = generator("floors", env.task.id, env.turn)
    action = actions[int(draw.integers(len(actions)))]
    return action if action != "search[]" else f"search[{env.task.params['query']}]"


POLICIES: dict[str, Policy] = {
    "chance": chance,
    "first hit": partial(first_hit, options=False),
    "first hit, options": partial(first_hit, options=True),
    "expert": Shop.expert,
}


def play(env: Shop, task: str, policy: Policy) -> float:
    """The reward of an episode."""
    env.reset(seed=0, options={"task": task})
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step(policy(env))
        total, ended = total + reward, terminated or truncated
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goals", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("gymnasium", "numpy"))
    register_all()
    shops: dict[str, dict[str, Any]] = {"recipe shop-tiny": load_recipe("shop-tiny")["env"]["args"]}
    shops |= {level: {"difficulty": level} for level in LEVELS}
    rows = []
    for shop, kwargs in shops.items():
        env = make("manyturn/Shop-v0", split="test", **kwargs).unwrapped
        assert isinstance(env, Shop)
        for name, policy in POLICIES.items():
            rewards = [play(env, env.tasks("test")[number].id, policy) for number in range(args.goals)]
            rows.append({"shop": shop, "policy": name, "success": fmean(r == 1 for r in rewards)})
            rows[-1]["reward"] = round(fmean(rewards), 3)
            print(f"{shop:18}{name:20}{rows[-1]['success']:8.3f}{rows[-1]['reward']:8.3f}", flush=True)
    write(args.out, about, {"goals": args.goals, "rows": rows})


if __name__ == "__main__":
    main()
