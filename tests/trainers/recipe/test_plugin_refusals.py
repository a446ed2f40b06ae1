"""A plugin's stages that get through with what a stage of ours would be refused for; and core files that name one."""

import ast
import json
import os
from pathlib import Path

import plugin_package
import pytest

from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[3]
STAGES = '''
from typing import Annotated, Literal
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.stages import ADVANTAGES, REWARDS, StageConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig

class FlatConfig(StageConfig):
    name: Literal["flat"] = "flat"
    compares_returns_only = True
    compares_groups = True
    soft: bool = False
    slope: Annotated[float, OnlyWith("soft")] = 1.0
    """Steepness."""

class FineConfig(StageConfig):
    name: Literal["fine"] = "fine"
    by_token = True

for kind in (FlatConfig, FineConfig):
    ADVANTAGES.register(kind)(lambda batch, config: batch.score_K())

class BonusConfig(StageConfig):
    name: Literal["bonus"] = "bonus"
    adds = frozenset({"bonus"})

class ThirstyConfig(StageConfig):
    name: Literal["thirsty"] = "thirsty"
    needs = frozenset({"foresight"})

class DrainConfig(StageConfig):
    name: Literal["drain"] = "drain"
    adds = frozenset({"paid"})
    empties = frozenset({"outcome"})

class PickyConfig(StageConfig):
    name: Literal["picky"] = "picky"

    def named_parts(self):
        return {"applause"}

class ShyConfig(StageConfig):
    name: Literal["shy"] = "shy"

    def refuse(self, run, env):
        if run.seed == 13:
            return "shy does not play with seed = 13: set another one"
        if env is not None and run.seed == 14:
            return f"shy does not play {env.name}: take another environment"
        return None

for kind in (BonusConfig, ThirstyConfig, DrainConfig, PickyConfig, ShyConfig):
    REWARDS.register(kind)(lambda batch, config: batch)

class FreshConfig(ObjectiveConfig):
    name: Literal["fresh"] = "fresh"
    needs_fresh_samples = True

class MeanConfig(ObjectiveConfig):
    name: Literal["mean"] = "mean"
    averages_over_reply = property(lambda self: True)

for kind in (FreshConfig, MeanConfig):
    OBJECTIVES.register(kind)(lambda tokens, config: None)
'''
GATE = '{name = "gated", gates = [{part = "%s", threshold = 0.5}]}'
SPA = '{name = "spa", completeness = "residual_to_last"}'
REFUSED = {
    f"--credit.advantage flat --credit.rewards [{SPA}] --progress {{}}": "flat compares full returns, where spa",
    "--credit.advantage flat --rollout.group 1": "rollout.group = 1 leaves flat nothing to compare an episode with",
    '--credit.advantage {name="flat",slope=2.0}': "slope has no effect with soft = false",
    "--credit.advantage flat --credit.advantage.slope 1.0": "credit.advantage.slope has no effect with",
    '--credit.advantage fine --credit.modulation ["empg"]': "empg weighs turns, but fine gives credit to tokens",
    "--credit.advantage fine --objective mean": "fine gives credit to tokens, which mean averages away over a reply",
    "--objective fresh --learner.epochs 2": "for which fresh has no ratio",
    f'--credit.rewards [{GATE % "bonus"},"bonus"]': "gated names the part 'bonus', which bonus adds: put it after",
    f'--credit.rewards ["drain",{GATE % "outcome"}]': "which drain has paid out before it and left at 0: put it before",
    '--credit.rewards ["thirsty"]': "thirsty needs the unknown column 'foresight'",
    '--credit.rewards ["shy"] --seed 13': "shy does not play with seed = 13: set another one",
    '--credit.rewards ["shy"] --seed 14': "shy does not play manyturn/GuessNumber-v0: take another environment",
    '--credit.rewards ["picky"]': "picky names the reward part 'applause', which nothing pays",
}
EACH = """
import json, sys
from manyturn.cli import app
for number, line in enumerate(json.loads(sys.argv[1])):
    sys.argv = ["manyturn", "train", "manyturn/GuessNumber-v0", "--out", f"run{number}", *line]
    try:
        app.main()
    except SystemExit as end:
        print("ended", end.code, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory, forked) -> dict[str, str]:
    """What ``manyturn train`` says to each line, where the plugin is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    site = plugin_package.install(folder / "site", "stages_of_mine", STAGES)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    lines = json.dumps([words(line) for line in REFUSED])
    (folder / "each.py").write_text(EACH)
    found = forked(folder / "each.py", lines, cwd=folder, env=env)
    told = found.stderr.splitlines()
    assert len(told) == 2 * len(REFUSED) and set(told[1::2]) == {"ended 2"}, found.stderr
    return dict(zip(REFUSED, told[::2], strict=True))


def words(line: str) -> list[str]:
    """``--name value`` pairs; a value may hold spaces, but no `` --``."""
    return [word for option in line.split("--")[1:] for word in ("--" + option).strip().split(" ", 1)]


@pytest.mark.parametrize(("line", "reason"), REFUSED.items(), ids=str)
def test_a_plugins_stage_is_refused_as_ours_are(answers, line, reason):
    assert answers[line].startswith("manyturn: ") and reason in answers[line]


def test_no_core_file_names_a_stage():
    """What another file knows a stage by, a plugin's stage does not have."""
    registries = (REWARDS, ADVANTAGES, MODULATIONS, OBJECTIVES, CURRICULA)
    names = {name for registry in registries for name in registry.names()}
    found = []
    for path in (ROOT / "trainers").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        literals = [node for node in nodes if isinstance(node, ast.Constant) and node.value in names]
        subscripts = [node for node in nodes if isinstance(node, ast.Subscript)]
        of_types = [n for s in subscripts if ast.unparse(s.value) == "Literal" for n in ast.walk(s) if n in literals]
        own = {node.value for node in of_types}
        found += [f"{path}:{node.lineno}: {node.value}" for node in literals if node.value not in own]
    assert not found
