"""A closed form that is not the truth of its world, or a world that does not isolate what it says."""

import pytest

import manyturn as mt
from manyturn.envs.pivot.pivot_walk import LEVELS

WORLDS = ("One", "Sign", "Pair", "Repair", "Delay", "Luck")
LUCKY = {"Luck"}  # whose chance is drawn inside of the episode


def made(world, difficulty="easy"):
    return mt.make(f"manyturn/Pivot{world}-v0", difficulty=difficulty).unwrapped


def exhaustive(env, noise):
    """V(s) by going every way, each with its probability."""
    here, expert, actions = env.snapshot(), env.expert(), env.admissible()
    value = 0.0
    for action in actions:
        env.restore(here)
        _, reward, terminated, truncated, _ = env.step(action)
        later = 0.0 if terminated or truncated else exhaustive(env, noise)
        value += (noise / len(actions) + (1 - noise) * (action == expert)) * (reward + later)
    env.restore(here)
    return value


@pytest.mark.parametrize("noise", [1.0, 0.4])
@pytest.mark.parametrize("world", [world for world in WORLDS if world not in LUCKY])
def test_the_closed_form_is_the_value_of_every_way_to_go(world, noise):
    env = made(world)
    for number in range(3):
        env.reset(seed=0, options={"task": env.tasks("train")[number].id})
        over = False
        while not over:
            assert env.value(noise) == pytest.approx(exhaustive(env, noise), abs=1e-12)
            effects = {action: env.effect(action, noise) for action in env.admissible()}
            weights = {action: noise / len(effects) + (1 - noise) * (action == env.expert()) for action in effects}
            assert sum(weights[a] * effects[a] for a in effects) == pytest.approx(0, abs=1e-12)
            *_, terminated, truncated, _ = env.step(env.admissible()[number])
            over = terminated or truncated


@pytest.mark.parametrize("difficulty", LEVELS)
@pytest.mark.parametrize("world", WORLDS)
def test_every_level_isolates_the_turns_that_it_names(world, difficulty):
    env = made(world, difficulty)
    _, info = env.reset(seed=1, options={"task": env.tasks("test")[5].id})
    pivots, over, idle = env.task.params["pivots"], False, 0
    while not over:
        effects = [abs(env.effect(action)) for action in info["admissible"]]
        matters = world == "Delay" or env.pivot in ({1} if world == "Luck" else {*range(len(pivots))})
        assert matters or max(effects) == 0
        idle += max(effects) == 0
        *_, terminated, truncated, info = env.step(env.expert())
        over = terminated or truncated
    assert info["success"] and (world == "Delay" or idle >= env.level.places - 2)
