"""What the comparison of credit methods runs: worlds, rows, cells, and the configuration of each.

Every recipe is taken apart by what its TOML says. Its own stage is named in ``OWN``, everything else it sets is a
companion, and each part is laid on one base: GRPO's advantage, PPO's clip, a mean over tokens, no regulariser, 16
groups of 8, outcomes alone. G-RA's companions are the rewards of turns that its gate is about: each world pays some,
which all other rows leave out.

The learning rate of a row in a world is chosen among ``FACTORS`` times the world's own, on ``CHOICE_SEEDS``, by the
success of training's last steps. Seeds that count are never among them.
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from credit_plan import COMMON, EPISODES
from credit_plan import WORLDS as SETTINGS

from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure

HERE = Path(__file__).resolve().parent
HYPOTHESES_FILE = HERE / "credit_methods.toml"

# World -> its class, and the parts that it pays for turns.
WORLDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "repeated": ("credit_paid_worlds.py:PaidRepeated", ("climb",)),
    "manners": ("credit_paid_worlds.py:PaidManners", ("smile",)),
    "tempting": ("credit_worlds.py:Tempting", ("fit", "polish")),
    "long": ("credit_paid_worlds.py:PaidLong", ("slip",)),
}
BASE = "base"
BASE_LAYER: dict[str, Any] = {
    "credit": {"advantage": {"name": "grpo"}},
    "objective": {"name": "clip", "low": 0.2, "high": 0.2, "dual": "off", "aggregation": "token-mean"},
}
# What a method is, by the sections of its recipe; the rest of the recipe are its companions.
OWN: dict[str, tuple[tuple[str, ...], ...]] = {
    "grpo": (("credit", "advantage"),),
    "gigpo": (("credit", "advantage"),),
    "ppo": (("credit", "advantage"), ("value",)),
    "turn-ppo": (("credit", "advantage"), ("value",)),
}
METHODS = ("gigpo", "ppo", "turn-ppo", "gra")
FACTORS = (1.0, 2.0, 4.0)  # the worlds' own rates are those of longer runs
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
        """Whether it is there for the learning rate alone."""
        return self.seed in CHOICE_SEEDS

    def __str__(self) -> str:
        return f"{self.world} {self.row} seed {self.seed} lr x{self.factor:g}"


@cache
def rows() -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Row -> the layers on the base. A method without companions that GRPO could have has no such row."""
    found: dict[str, tuple[Mapping[str, Any], ...]] = {BASE: ()}
    for method in OWN:
        stage, companions, shape = parts_of(method)
        if method != "grpo":  # whose own stage is the base's
            found[f"{method}/stage"] = (stage,)
            if companions:
                found[f"{method}/companions"] = (companions,)
        found[f"{method}/recipe"] = (stage, companions, shape)
    [gate] = [stage for stage in load_recipe("gra")["credit"]["rewards"] if stage["name"] == "gated"]
    return {**found, "gra/companions": ({},), "gra/recipe": ({"credit": {"rewards": [gate]}},)}


def parts_of(method: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A recipe's own stage, its companions, and its rollouts' shape, which GRPO's comparison may be unable to have.

    >>> stage, companions, shape = parts_of("gigpo")
    >>> stage["credit"]["advantage"]["name"], sorted(companions), shape
    ('gigpo', ['credit', 'objective'], {})
    """
    recipe = load_recipe(method)
    own = [path for path in OWN[method] if path[0] in recipe]
    stage: dict[str, Any] = {}
    for path in own:
        stage = stacked([stage, _only(recipe, path)])
    companions = _without(recipe, own)
    shape = {"rollout": companions.pop("rollout")} if "rollout" in companions else {}
    return stage, {} if _on_base(companions) == _on_base({}) else companions, shape


def _on_base(layer: Mapping[str, Any]) -> RunConfig:
    return configure(stacked([COMMON, SETTINGS["long"], BASE_LAYER, layer]))


def _only(values: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    name, *rest = path
    return {name: _only(values[name], rest) if rest else values[name]}


def _without(values: Mapping[str, Any], paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    left = {}
    for name, value in values.items():
        here = [path[1:] for path in paths if path[0] == name]
        if not all(here):
            continue
        value = _without(value, here) if here else value
        if value != {}:
            left[name] = value
    return left


def peers(row: str) -> list[str]:
    """Rows whose weights this one's must differ from, or a part of it did nothing."""
    method, _, part = row.partition("/")
    parts = [other for other in rows() if other.startswith(f"{method}/") and other != row and part == "recipe"]
    return [] if row == BASE else [BASE, *parts]


def order() -> list[str]:
    """Rows as they are run: the base, then parts, then recipes of which other rows are parts."""
    return sorted(rows(), key=lambda row: len(peers(row)))


def choices(world: str) -> list[Cell]:
    """Cells that choose the learning rates of a world."""
    return [Cell(world, row, seed, factor) for seed in CHOICE_SEEDS for row in order() for factor in FACTORS]


def config_of(cell: Cell, tiny: bool = False) -> RunConfig:
    """The configuration of a cell."""
    recipe = stacked([_common(cell, tiny), *_rewards(cell), BASE_LAYER, *rows()[cell.row]])
    group, rate = recipe["rollout"]["group"], _common(cell, tiny)["learner"]["lr"]
    episodes, steps = (TINY_EPISODES, TINY_STEPS) if tiny else (EPISODES, STEPS)
    settled = {"seed": cell.seed, "steps": steps, "checkpoint_every": steps, "rollout": {"tasks": episodes // group}}
    return configure(recipe, settled, {"learner": {"lr": rate * cell.factor}})


def warmup_of(cell: Cell, tiny: bool = False) -> RunConfig:
    """The run whose end all rows of a world and a seed begin with."""
    return configure(stacked([_common(cell, tiny), BASE_LAYER]), {"seed": cell.seed, "steps": 0})


def _common(cell: Cell, tiny: bool) -> dict[str, Any]:
    env = {"env": {"id": f"{HERE}/{WORLDS[cell.world][0]}"}}
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
    """What was written down before the runs."""
    return tomllib.loads(HYPOTHESES_FILE.read_text(encoding="utf-8"))


def hypotheses_hash() -> str:
    """Hash of the file with the hypotheses."""
    return hashlib.sha256(HYPOTHESES_FILE.read_bytes()).hexdigest()[:16]
