"""Plan of the comparison of credit methods: worlds, rows, cells, and the configuration of each.

Recipes are taken apart by what their TOML says. Each part is a row of its own, laid on one base: GRPO's advantage,
PPO's clip, a mean over tokens, no regulariser, a constant learning rate, 16 groups of 8, outcomes alone. A method's
``stage`` is its advantage, and its critic if it has one; other parts are named in ``PARTS``; ``recipe`` is all of it.
G-RA has two rows: the worlds' own rewards for turns, which all other rows leave out, and its gate on these.

The learning rate of a row in a world is a factor of the world's own. It is chosen on ``CHOICE_SEEDS`` by the success of
training's last steps: from ``FACTORS``, and further by doubling while the best one is at an end. Seeds that count are
never among them.
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.credit.settings import COMMON, EPISODES, WORLDS_FILE
from benchmarks.credit.settings import WORLDS as SETTINGS
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure

HERE = Path(__file__).resolve().parent
HYPOTHESES_FILE = HERE / "hypotheses.toml"
PLAN_FILES = (HERE / "plan.py", HERE.parent / "settings.py", WORLDS_FILE)

# World -> its class, and the parts that it pays for turns.
WORLDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "repeated": ("PaidRepeated", ("climb",)),
    "manners": ("PaidManners", ("smile",)),
    "tempting": ("Tempting", ("fit", "polish")),
    "long": ("PaidLong", ("slip",)),
}
BASE = "base"
BASE_LAYER: dict[str, Any] = {
    "credit": {"advantage": {"name": "grpo"}},
    "objective": {"name": "clip", "low": 0.2, "high": 0.2, "dual": "off", "aggregation": "token-mean"},
    "learner": {"lr_schedule": "constant"},
}
# Method -> part -> the settings of its recipe that make it up. What is in no part is the base's already, or the shape
# of rollouts, which only the row of the full recipe has: GRPO's comparison needs groups.
PARTS: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {
    "gigpo": {
        "stage": (("credit", "advantage"),),
        "kl": (("objective", "kl"),),
        "penalty": (("credit", "rewards"),),
        "dual": (("objective", "dual"),),
        "entropy": (("objective", "entropy"),),
    },
    "ppo": {"stage": (("credit", "advantage"), ("value",))},
    "turn-ppo": {
        "stage": (("credit", "advantage"), ("value",)),
        "ratio": (("objective", "ratio"), ("objective", "aggregation")),
    },
}
METHODS = ("gigpo", "ppo", "turn-ppo", "gra")
FACTORS = (2.0, 4.0, 8.0)  # the worlds' own rates are those of longer runs
BOUNDS = (0.25, 64.0)  # beyond which no factor is tried
CHOICE_SEEDS = (100, 101)
LAST_STEPS = 3  # of training, whose success chooses the learning rate
STEPS = 6  # after more of them the base hardly has room above it where states recur
_NO_PANEL = {"evaluation": {"limit": 1, "repeats": 1}}  # where nobody asks for it

# Seconds instead of hours, to try the machinery.
TINY: dict[str, Any] = {
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 1, "sample_tasks": 8},
    "warmup": {"episodes": 60, "until_success": 0.0, "check_every": 100, "check_episodes": 4, "max_updates": 100},
    "evaluation": {"limit": 4, "repeats": 2},
}
TINY_STEPS, TINY_EPISODES = 2, 16


class Cell(NamedTuple):
    """One training run.

    Attributes:
        factor: of the world's learning rate.
    """

    world: str
    row: str
    seed: int
    factor: float

    @property
    def chooses(self) -> bool:
        """True if the cell only chooses the learning rate."""
        return self.seed in CHOICE_SEEDS

    def __str__(self) -> str:
        return f"{self.world} {self.row} seed {self.seed} lr x{self.factor:g}"


@cache
def rows() -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Row -> the layers on the base."""
    layers: dict[str, tuple[Mapping[str, Any], ...]] = {BASE: (), "grpo/recipe": (load_recipe("grpo"),)}
    for method, parts in PARTS.items():
        recipe = load_recipe(method)
        layers |= {f"{method}/{part}": (_only(recipe, paths),) for part, paths in parts.items()}
        layers[f"{method}/recipe"] = (recipe,)
    [gate] = [stage for stage in load_recipe("gra")["credit"]["rewards"] if stage["name"] == "gated"]
    return {**layers, "gra/reward": ({},), "gra/gate": ({"credit": {"rewards": [gate]}},)}


def _only(values: Mapping[str, Any], paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The entries at those paths that exist."""
    entries: dict[str, Any] = {}
    for path in paths:
        place, part = values, {}
        for name in path[:-1]:
            place = place.get(name, {})
        if path[-1] in place:
            part = {path[-1]: place[path[-1]]}
        for name in reversed(path[:-1]):
            part = {name: part}
        entries = stacked([entries, part])
    return entries


def parts_of(method: str) -> list[str]:
    """The rows of a method that are compared with the base, the full recipe aside.

    >>> parts_of("turn-ppo"), parts_of("gra")
    (['turn-ppo/stage', 'turn-ppo/ratio'], ['gra/reward'])
    """
    full = full_row_of(method)
    return [row for row in rows() if row.startswith(f"{method}/") and row != full]


def full_row_of(method: str) -> str:
    """The row that has all of a method. G-RA's is its gate: the tiers of its recipe are about tools."""
    return "gra/gate" if method == "gra" else f"{method}/recipe"


def peers(row: str) -> list[str]:
    """Rows that this one must not play just as, or a part of it did nothing."""
    method = row.partition("/")[0]
    return [] if row == BASE else [BASE, *(parts_of(method) if row == full_row_of(method) else [])]


def order() -> list[str]:
    """Rows as they are run: the base, then parts, then recipes of which other rows are parts."""
    return sorted(rows(), key=lambda row: len(peers(row)))


def choices(world: str, row: str, factors: Sequence[float] = FACTORS) -> list[Cell]:
    """Cells that choose the learning rate of a row in a world."""
    return [Cell(world, row, seed, factor) for seed in CHOICE_SEEDS for factor in factors]


def config_of(cell: Cell, *, tiny: bool = False) -> RunConfig:
    """The configuration of a cell."""
    recipe = stacked([_common(cell, tiny=tiny), *_rewards(cell), BASE_LAYER, *rows()[cell.row]])
    group, rate = recipe["rollout"]["group"], _common(cell, tiny=tiny)["learner"]["lr"]
    episodes, steps = (TINY_EPISODES, TINY_STEPS) if tiny else (EPISODES, STEPS)
    settled = {"seed": cell.seed, "steps": steps, "checkpoint_every": steps, "rollout": {"tasks": episodes // group}}
    return configure(recipe, settled, {"learner": {"lr": rate * cell.factor}})


def warmup_of(cell: Cell, *, tiny: bool = False) -> RunConfig:
    """The run whose end all rows of a world and a seed begin with."""
    return configure(stacked([_common(cell, tiny=tiny), BASE_LAYER]), {"seed": cell.seed, "steps": 0})


def _common(cell: Cell, *, tiny: bool) -> dict[str, Any]:
    env = {"env": {"id": f"{WORLDS_FILE}:{WORLDS[cell.world][0]}"}}
    layers = [COMMON, SETTINGS[cell.world], env, {"evaluation": {"every": 0}}, *([TINY] if tiny else [])]
    layers += [_NO_PANEL] if cell.chooses else []
    common = stacked(layers)
    del common["evaluation"]["every_limit"]
    return common


def _rewards(cell: Cell) -> list[dict[str, Any]]:
    """Outcomes alone, but for G-RA."""
    if cell.row.startswith("gra/"):
        return []
    weights = dict.fromkeys(WORLDS[cell.world][1], 0.0)
    return [{"credit": {"rewards": [{"name": "part_weights", "weights": weights}]}}]


def hypotheses() -> dict[str, Any]:
    """The hypotheses, written before the runs."""
    return tomllib.loads(HYPOTHESES_FILE.read_text(encoding="utf-8"))


def seeds() -> range:
    """The seeds that count."""
    written = hypotheses()
    return range(written["first_seed"], written["first_seed"] + written["seeds"])


def hypotheses_hash() -> str:
    """Hash of the file with the hypotheses."""
    return _hash([HYPOTHESES_FILE])


def plan_hash() -> str:
    """Hash of the files that settle the runs: plan, settings, worlds."""
    return _hash(PLAN_FILES)


def _hash(files: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
