"""An environment that knows nothing of manyturn trains and evaluates all the same."""

import asyncio

import pytest

from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

FOREIGN = '''
import gymnasium
from gymnasium.spaces import Text

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .?"

class Parrot(gymnasium.Env):
    """Say the word back, three times in all."""
    observation_space = Text(80, charset=CHARACTERS)
    action_space = Text(80, charset=CHARACTERS)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 3
        return self._next(), {}

    def _next(self):
        self.word = ["tea", "milk", "salt"][int(self.np_random.integers(3))]
        return f"say {self.word}"

    def step(self, action):
        if action != self.word:
            return "no", 0.0, True, False, {}
        self.left -= 1
        return (self._next() if self.left else "done"), 1.0, self.left == 0, False, {}

    def expert(self):
        return self.word
'''


@pytest.mark.deep
def test_a_gymnasium_environment_of_strings_trains(tmp_path):
    file = tmp_path / "parrot.py"
    file.write_text(FOREIGN)
    config = parse_config(
        {
            "env": {"id": f"{file}:Parrot"},
            "model": {"name": "tiny", "width": 16, "heads": 2, "sample_tasks": 8},
            "warmup": {"episodes": 100, "noise": 0.0, "max_updates": 150, "until_success": 0.9, "check_every": 25},
            "sampling": {"max_tokens": 6},
            "rollout": {"tasks": 4, "group": 4},
            "credit": {"advantage": "grpo"},
            "evaluation": {"limit": 20},
            "steps": 2,
        }
    )
    summary = asyncio.run(train(config, tmp_path / "run"))
    assert summary["expert"]["success"] == 1.0
    assert summary["after"]["success"] > 0.5 > summary["random"]["success"]
    assert summary["panel"]["n_tasks"] == 20
