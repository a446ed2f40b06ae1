"""Environments that others wrote and many use: a check that fails one of them is at fault itself."""

import re
from importlib.util import find_spec
from pathlib import Path

import gymnasium
import pytest

from manyturn.envs.conformance.check_runner import NAMES, Finding, Report, examined

pytestmark = pytest.mark.versions

PAGE = (Path(__file__).parents[3] / "docs" / "gymnasium-environments.md").read_text(encoding="utf-8")
WORDS = next(block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Words" in block)
TAXI = max(env for env in gymnasium.registry if env.startswith("Taxi-v"))  # v4 is not in the lowest version
GYMNASIUM = (
    *("FrozenLake-v1", "FrozenLake8x8-v1", TAXI, "CliffWalking-v1", "CliffWalkingSlippery-v1", "Blackjack-v1"),
    *("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"),
)
TEXTARENA = (
    *("2048-v0-easy", "Bandit-v0", "Blackjack-v0", "FrozenLake-v0", "GuessTheNumber-v0", "LightsOut-v0"),
    *("Mastermind-v0", "Minesweeper-v0-small", "PegJump-v0", "Secretary-v0", "TowerOfHanoi-v0"),
)
REASONING = (
    *("leg_counting", "count_bits", "basic_arithmetic", "chain_sum", "gcd", "lcm", "largest_island"),
    *("products", "spell_backward", "letter_counting"),
)
# A worker process and the figure of speed take a second each, and are the same for all of these.
QUICK = [name for name in NAMES if name not in ("other process", "speed", "processes")]


def report(name: str, kwargs: dict, chosen: list[str]) -> Report:
    return Report(name, tuple(Finding(**values) for values in examined(name, kwargs, 2, 0, 60.0, chosen)))


@pytest.mark.parametrize("env", GYMNASIUM)
def test_a_stock_environment_in_the_wrapper_of_the_page_passes(env, tmp_path):
    (tmp_path / "words.py").write_text(WORDS)
    chosen = [*QUICK, "other process"] if env == GYMNASIUM[0] else QUICK
    found = report(f"{tmp_path}/words.py:Words", {"env": env}, chosen)
    assert found.passed and not found.repeats, str(found)


@pytest.mark.parametrize(
    ("package", "env"),
    [
        *(("textarena", f"textarena:{game}") for game in TEXTARENA),
        *(("reasoning_gym", f"reasoning-gym:{dataset}") for dataset in REASONING),
    ],
)
def test_a_game_or_dataset_of_another_package_passes(package, env):
    if find_spec(package) is None:
        pytest.skip(f"no {package}: pip install 'manyturn[{package.replace('_', '-')}]'")
    found = report(env, {}, QUICK)
    assert found.passed and not found.repeats, str(found)
