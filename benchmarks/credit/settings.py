"""Settings that comparisons of credit share: the worlds, the budget of a step, the model and its warm-up."""

from pathlib import Path
from typing import Any

WORLDS_FILE = Path(__file__).resolve().with_name("worlds") / "properties.py"
EPISODES = 128  # of a step, whatever the size of a group

COMMON: dict[str, Any] = {
    "agent": {"instructions": False, "max_context": 512},
    "sampling": {"max_tokens": 6},
    "warmup": {
        "episodes": 1500,
        "noise": 0.2,
        "max_updates": 600,
        "until_success": 0.3,
        "check_every": 25,
        "check_episodes": 128,
    },
    "rollout": {"tasks": EPISODES // 8, "group": 8},
    "learner": {"lr": 5e-4, "minibatch": 16, "old_logprobs": "engine"},
    "checkpoint_every": 10,
    "device": "cpu",
    "threads": 1,
}


def _own(name: str) -> dict[str, Any]:
    return {"id": f"{WORLDS_FILE}:{name}"}


WORLDS: dict[str, dict[str, Any]] = {
    "tempting": {"env": _own("Tempting"), "warmup": {"noise": 0.4}},
    "repeated": {"env": _own("Repeated")},
    # Only right answers are in demonstrations that succeed: imitation passes through every success at once.
    "decisive": {
        "env": _own("Decisive"),
        "warmup": {"noise": 0.4, "check_every": 5, "check_episodes": 64},
        "learner": {"lr": 4e-4},
    },
    "shortcut": {"env": _own("Shortcut"), "warmup": {"noise": 0.4, "check_every": 10}},
    # Every group fails. The warm-up is of the taught form, where words of the task say what is right.
    "unmarked": {
        "env": {"id": f"{Path(__file__).resolve().with_name('worlds') / 'guided.py'}:UnmarkedPaths"},
        "model": {"query_key_init": "equal"},
        "warmup": {
            "episodes": "stream",
            "noise": 0.0,
            "observed": 0.1,
            "batch": 16,
            "max_updates": 1000,
            "until_success": 0.6,  # about 0.7 at most: of some taught walks nothing is said
        },
    },
    # All seven kinds of experiments, in two rooms, up to 30 turns, paid at their end only.
    "laboratory": {
        "env": {"id": "manyturn/Laboratory-v0", "args": {"difficulty": "small"}},
        "model": {"sample_tasks": 400},
        "agent": {"max_context": 1024},
        "sampling": {"max_tokens": 16},
        "warmup": {
            "episodes": "stream",
            "observed": 0.1,
            "batch": 16,
            "lr": 3e-3,
            "max_updates": 2000,
            "check_every": 50,
        },
    },
}
