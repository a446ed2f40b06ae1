"""What the comparison of recipe with recipe runs: worlds, methods, and the configuration of each run.

A method is one recipe or several joined by +, laid on the world's settings: ``grpo+epo`` is GRPO with EPO's
regulariser. What a world settles stands above what recipes say, so that all methods have one budget: as many steps
of as many episodes.
"""

from pathlib import Path
from typing import Any, NamedTuple

from manyturn.envs.contract.options import ConfigError
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure

WORLDS_FILE = Path(__file__).resolve().with_name("credit_worlds.py")
BASELINE = "grpo"

METHODS = ("grpo", "ppo", "turn-ppo", "gigpo", "grpo+gra", "grpo+epo", "ppo+spa", "turn-ppo+spa", "gigpo-spa-epo-gra")

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
    "evaluation": {"limit": 150, "repeats": 2, "every": 5, "every_limit": 64},
    "steps": 15,
    "checkpoint_every": 10,
    "device": "cpu",
    "threads": 1,
}


def _own(name: str) -> dict[str, Any]:
    return {"id": f"{WORLDS_FILE}:{name}"}


WORLDS: dict[str, dict[str, Any]] = {
    "household": {
        "env": {"id": "manyturn/Household-v0", "args": {"difficulty": "tiny", "max_turns": 12}},
        "agent": {"max_context": 1024},
        "sampling": {"max_tokens": 12},
        # Names are to be copied from turns long past, which a small decoder learns late and all at once.
        "warmup": {"noise": 0.1, "lr": 3e-3, "max_updates": 1500, "until_success": 0.2},
    },
    "tempting": {"env": _own("Tempting"), "warmup": {"noise": 0.4}},
    "long": {
        "env": _own("Long"),
        "warmup": {"noise": 0.4, "lr": 1e-3, "check_every": 5},
        "learner": {"lr": 2e-4},
    },
    "repeated": {"env": _own("Repeated")},
    # Only right answers are in demonstrations that succeed: imitation passes through every success within moments.
    "decisive": {
        "env": _own("Decisive"),
        "warmup": {"noise": 0.4, "check_every": 5, "check_episodes": 64},
        "learner": {"lr": 4e-4},
    },
    "clues": {"env": _own("Clues"), "warmup": {"noise": 0.4, "check_every": 5}},
    "shortcut": {"env": _own("Shortcut"), "warmup": {"noise": 0.4, "check_every": 10}},
    "manners": {
        "env": _own("Manners"),
        "warmup": {"noise": 0.4, "lr": 1e-3, "check_every": 5},
        "learner": {"lr": 2e-4},
    },
}

# Layers beside the recipes: for a world that pays parts of its own, which the recipe of G-RA leaves to whoever has
# some, and to tell apart what a method's settings do.
LAYERS: dict[str, dict[str, Any]] = {
    "gated": {"credit": {"rewards": [{"name": "gated", "gates": [{"part": "outcome", "threshold": 0.5}]}]}},
    "outcome-only": {"credit": {"rewards": [{"name": "part_weights", "weights": {"fit": 0.0, "polish": 0.0}}]}},
    "anchors": {"credit": {"advantage": load_recipe("gigpo")["credit"]["advantage"]}},
    "spa-paper": {  # without the rest of the outcome at the last turn
        "credit": {"rewards": [{"name": "spa", "alpha": 1.0, "beta": 0.0, "completeness": "none"}]},
        "progress": {"fit": "least_squares"},
    },
    "understood": {"credit": {"rewards": [{"name": "invalid_penalty", "flag": "understood"}]}},
    "gain": {"credit": load_recipe("igpo")["credit"]},  # with the groups, bounds and KL of another recipe
    "value-at-last": {"credit": {"advantage": {"value_at": "last"}}},
    "epo-tenfold": stacked([load_recipe("epo"), {"objective": {"epo": {"coef": 0.01}}}]),
}
# Every other recipe, in one world. Not among them: scaling-inter, whose turn limits suit longer runs; igpo, which asks
# for a world that names the true answer (clues); stratified-search, which asks for tools; recipes of whole runs.
OTHERS = (
    *("rloo", "opo", "dr-grpo", "reinforce-pp", "reinforce-pp-baseline", "loop", "mt-grpo", "spo", "stratified"),
    *("gigpo-similarity", "bilevel-ppo", "dapo", "grpo+ssl", "grpo+aepo-agentic", "grpo+empg", "grpo+cispo"),
    *("grpo+gmpo", "grpo+gspo", "grpo+sapo", "grpo+topr", "grpo+icepop", "grpo+tis", "grpo+difficulty-filter"),
    *("grpo+dump", "grpo+sec", "arpo"),
)
EXTRA: dict[str, tuple[str, ...]] = {
    "clues": ("igpo", "grpo+gain"),
    "decisive": ("ppo+spa-paper", "turn-ppo+spa-paper"),
    "household": ("grpo+anchors",),
    "repeated": OTHERS,
    "tempting": ("grpo+gated", "grpo+outcome-only"),
    "long": ("grpo+epo-tenfold", "turn-ppo+value-at-last"),
    "manners": ("turn-ppo+value-at-last", "ppo+spa-paper", "turn-ppo+spa-paper"),
    "shortcut": ("grpo+epo-tenfold",),
}


class Cell(NamedTuple):
    """One training run."""

    world: str
    method: str
    seed: int

    @property
    def folder(self) -> Path:
        """Where it lies in the benchmark's folder."""
        return Path(self.world, self.method, f"seed-{self.seed}")


def plan(worlds: list[str], methods: list[str], seeds: int) -> list[list[Cell]]:
    """Cells in the order in which they are worth having: those of one seed and world are a list of their own."""
    return [
        [Cell(world, method, seed) for method in dict.fromkeys((*methods, *EXTRA.get(world, ())))]
        for seed in range(seeds)
        for world in worlds
    ]


def config_of(cell: Cell, steps: int | None = None) -> RunConfig:
    """The configuration of a run; raises ConfigError for a world or a recipe that does not exist.

    Args:
        steps: in place of the benchmark's own number.
    """
    if cell.world not in WORLDS:
        raise ConfigError(f"no world {cell.world!r}: there are {', '.join(WORLDS)}")
    method = [LAYERS.get(name) or load_recipe(name) for name in cell.method.split("+")]
    recipe = stacked([COMMON, WORLDS[cell.world], *method])
    group = recipe["rollout"]["group"]
    settled = {"seed": cell.seed, "steps": COMMON["steps"] if steps is None else steps}
    return configure(recipe, WORLDS[cell.world], {**settled, "rollout": {"tasks": EPISODES // group}})


def warmup_of(cell: Cell) -> RunConfig:
    """The same run up to the end of the warm-up, in what all methods share."""
    return configure(stacked([COMMON, WORLDS[cell.world]]), {"seed": cell.seed, "steps": 0})


def shares_warmup(config: RunConfig, warmup: RunConfig) -> bool:
    """Whether a run would come out of its own warm-up with the weights of that one, to the bit."""
    return _decides_warmup(config) == _decides_warmup(warmup)


_AFTERWARDS = {"credit", "objective", "value", "progress", "curriculum", "steps", "checkpoint_every", "loggers"}
_AFTERWARDS_IN = {
    "env": ("wrappers",),  # demonstrations are chosen by success, and rewards play no part in imitation
    "rollout": ("tasks", "group", "rounds", "horizon", "branching"),
    "learner": ("lr", "lr_end", "lr_schedule", "lr_warmup", "minibatch", "epochs", "old_logprobs", "stop_kl"),
}


def _decides_warmup(config: RunConfig) -> dict[str, Any]:
    values = config.model_dump(mode="json", exclude=_AFTERWARDS)
    return values | {
        section: {name: value for name, value in values[section].items() if name not in idle}
        for section, idle in _AFTERWARDS_IN.items()
    }
