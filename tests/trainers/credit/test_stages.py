"""Registries and configurations: what a recipe may say, and what happens to what it may not."""

import importlib.util
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import tomli_w
from pydantic import ValidationError

from manyturn.envs.contract.options.options import Options
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS, StageConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA

PLUGIN = """
from typing import Literal
from manyturn.trainers.credit.groups.group_statistics import deviation, score_statistics
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig

class CentredConfig(StageConfig):
    name: Literal["test_centred"] = "test_centred"
    shift: float = 0.0

@ADVANTAGES.register(CentredConfig)
def centred(batch, config):
    return deviation(batch.score_K(), score_statistics(batch, batch.group_K, "episodes"), "zero") + config.shift
"""


class Recipe(Options):
    """As a run's configuration holds the stages."""

    rewards: tuple[Annotated[Any, REWARDS.field], ...] = ()
    advantage: Annotated[Any, ADVANTAGES.field] = "grpo"
    modulation: tuple[Annotated[Any, MODULATIONS.field], ...] = ()
    objective: Annotated[Any, OBJECTIVES.field] = "clip"


@pytest.fixture
def batch() -> TurnBatch:
    return TurnBatch.from_episodes(
        [[0.0, 1.0], [0.0, 0.0], [0.5]],
        groups=["a", "a", "a"],
        anchors=[["x", "y"], ["x", "x"], ["x"]],
        format_valid=[[True, True], [False, True], [True]],
    )


@pytest.fixture
def registered():
    """Forget what a test registers."""
    stages = (REWARDS, ADVANTAGES, MODULATIONS, OBJECTIVES)
    assert all(stage.names() for stage in stages), "those that come along must be loaded, and stay"
    before = [dict(stage._entries) for stage in stages]
    yield
    for stage, entries in zip(stages, before, strict=True):
        stage._entries = entries


def test_a_recipe_comes_back_from_toml_as_it_was():
    recipe = Recipe.model_validate(
        {
            "rewards": [{"name": "part_weights", "weights": {"progress": 0.5}}, "invalid_penalty"],
            "advantage": {"name": "gigpo", "gamma": 0.9, "similarity": 0.9, "mode": "mean_std_norm"},
            "objective": {"name": "clip", "kl": {"coef": 0.01}, "aggregation": "seq-mean-token-sum-norm", "scale": 512},
        }
    )
    text = tomli_w.dumps(recipe.model_dump(exclude_none=True))
    again = Recipe.model_validate(tomllib.loads(text))
    assert again == recipe
    assert again.advantage.gamma == 0.9
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


@pytest.mark.parametrize("stage", [REWARDS, ADVANTAGES, MODULATIONS, OBJECTIVES, CURRICULA])
def test_every_function_has_documented_options_and_defaults_that_survive_a_dump(stage):
    assert stage.names()
    for name in stage.names():
        config_type = stage.entry(name).config_type
        for option, field in config_type.model_fields.items():
            assert field.description or option == "name", f"{name}.{option} has no docstring"
        if not any(field.is_required() for field in config_type.model_fields.values()):
            config = stage.parse(name)
            assert stage.parse(config.model_dump(exclude_none=True)) == config


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"advantage": "gigppo"}, ["unknown advantage 'gigppo'", "did you mean 'gigpo'", "rloo"]),
        ({"advantage": {"gamma": 0.9}}, ["names no advantage", "gigpo"]),
        ({"advantage": {"name": "gigpo", "gama": 0.9}}, ["unknown Gigpo option 'gama'", "did you mean 'gamma'"]),
        ({"advantage": {"name": "gigpo", "gamma": 1.5}}, ["less than or equal to 1"]),
        ({"advantage": {"name": "grpo", "eps": float("nan")}}, ["eps"]),
        ({"advantage": {"name": "grpo", "std": False, "eps": 1e-4}}, ["eps has no effect with std = false"]),
        ({"advantage": {"name": "gigpo", "eps": 1e-4}}, ["eps has no effect with mode = 'mean_norm'"]),
        (
            {"advantage": {"name": "gigpo", "turn_weight": 0, "gamma": 0.9}},
            ["with turn_weight = 0"],
        ),
        ({"advantage": {"name": "gigpo", "similarity": 1.0}}, ["similarity"]),
        ({"rewards": ["invalid_penalty", {"name": "invalid_penalty", "coef": 1}]}, ["named twice"]),
        ({"rewards": [{"name": "invalid_penalty", "coef": 0}]}, ["greater than 0"]),
        ({"rewards": [{"name": "part_weights", "weights": {}}]}, ["weights"]),
        ({"modulation": ["nothing"]}, ["unknown modulation 'nothing'"]),
        ({"advantge": "grpo"}, ["did you mean 'advantage'"]),
    ],
)
def test_a_wrong_recipe_is_refused_with_the_reason(values, told):
    with pytest.raises(ValidationError) as refusal:
        CreditConfig.model_validate({"advantage": "grpo", **values})
    for words in told:
        assert words in str(refusal.value)


def test_a_configuration_cannot_change():
    with pytest.raises(ValidationError):
        ADVANTAGES.parse("gigpo").gamma = 1.0


def test_a_plugin_of_one_file_is_one_more_advantage(tmp_path: Path, batch, registered):
    path = tmp_path / "my_advantage.py"
    path.write_text(PLUGIN)
    spec = importlib.util.spec_from_file_location("my_advantage", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert "test_centred" in ADVANTAGES.names()
    result = credit(batch, CreditConfig(advantage={"name": "test_centred", "shift": 1.0}))
    np.testing.assert_allclose(result.advantage_K.mean(), 1.0)
    unscorable = replace(batch, parts={"outcome": [0.0, 1.0, float("nan"), 0.0, 0.5]})
    advantage_K = credit(unscorable, CreditConfig(advantage="test_centred")).advantage_K
    assert (advantage_K[2:4] == 0).all() and (advantage_K[[0, 1, 4]] != 0).all()


def test_a_name_is_given_once(registered):
    class Mine(StageConfig):
        name: Literal["grpo"] = "grpo"

    ADVANTAGES.names()
    with pytest.raises(ValueError, match="'grpo' is registered twice"):
        ADVANTAGES.register(Mine)(lambda batch, config: batch.score_K())
    with pytest.raises(ValueError, match="not the configuration of advantage 'grpo'"):
        ADVANTAGES.parse(Mine())


def test_a_configuration_without_a_fixed_name_cannot_be_registered():
    class Nameless(StageConfig):
        pass

    with pytest.raises(TypeError, match="Literal"):
        ADVANTAGES.register(Nameless)


def test_modulations_run_in_order_on_the_advantage(batch, registered):
    class TimesConfig(StageConfig):
        name: Literal["test_times"] = "test_times"
        factor: float

    class PlusConfig(StageConfig):
        name: Literal["test_plus"] = "test_plus"

    @MODULATIONS.register(TimesConfig)
    def times(batch, advantage_K, config):
        return config.factor * advantage_K

    @MODULATIONS.register(PlusConfig)
    def plus(batch, advantage_K, config):
        return advantage_K + 1

    plain_K = credit(batch, CreditConfig(advantage="grpo")).advantage_K
    config = CreditConfig(advantage="grpo", modulation=[{"name": "test_times", "factor": 2}, "test_plus"])
    np.testing.assert_allclose(credit(batch, config).advantage_K, 2 * plain_K + 1)


@pytest.mark.parametrize(
    ("returned", "told"), [(lambda s: s[:-1], "shape"), (lambda s: s / 0, "at place 0 of the batch, which is scorable")]
)
def test_a_function_that_breaks_its_contract_is_named(batch, registered, returned, told):
    class BrokenConfig(StageConfig):
        name: Literal["test_broken"] = "test_broken"

    @ADVANTAGES.register(BrokenConfig)
    def broken(batch, config):
        with np.errstate(all="ignore"):
            return returned(batch.score_K())

    with pytest.raises(ValueError, match=f"test_broken returned .*{told}"):
        credit(batch, CreditConfig(advantage="test_broken"))


def test_an_unknown_part_is_answered_with_the_parts_there_are(batch):
    config = CreditConfig(rewards=[{"name": "part_weights", "weights": {"outcom": 2.0}}], advantage="grpo")
    with pytest.raises(ValueError, match="unknown reward part 'outcom'; did you mean 'outcome'"):
        credit(batch, config)
    nothing = CreditConfig(rewards=[{"name": "part_weights", "weights": {"outcome": 0.0}}], advantage="grpo")
    with pytest.raises(ValueError, match="nothing is left to learn from"):
        credit(batch, nothing)


def test_gigpo_without_anchors_is_refused(batch):
    with pytest.raises(ValueError, match="needs anchor_K"):
        credit(replace(batch, anchor_K=None), CreditConfig(advantage="gigpo"))
    similar = CreditConfig(advantage={"name": "gigpo", "similarity": 0.9})
    with pytest.raises(ValueError, match="needs anchor_text"):
        credit(replace(batch, anchor_text=None), similar)
    with pytest.raises(ValueError, match="the situation of turn 1 is a int"):
        credit(replace(batch, anchor_text=("x", 1, "x", "x", "x")), similar)


def test_credit_tells_how_it_came_about(batch):
    more = TurnBatch.from_episodes(
        [[0.0, 1.0], [0.0], [2.0], [2.0], [float("nan")]],
        groups=["a", "a", "b", "b", "b"],
        anchors=[["x", "y"], ["x"], ["x"], ["x"], ["x"]],
    )
    result = credit(more, CreditConfig(advantage="gigpo"))
    assert result.diagnostics == {
        "groups_without_signal": 0.5,
        "penalised_turns": 0.0,
        "penalty_alone": 0.0,
        "unscorable_episodes": 0.2,
        "singleton_anchors": 0.2,
        "mean_anchor_size": 5 / 3,
    }
    np.testing.assert_allclose(result.levels["episode"] + result.levels["turn"], result.advantage_K)
    assert set(credit(batch, CreditConfig(advantage="grpo")).levels) == set()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"turn_K": np.array([0, 2, 0, 1, 0])}, r"turn_K of episode 0 is \[0, 2\], not 0 to 1"),
        ({"turn_K": np.array([0, 0, 0, 1, 0])}, r"turn_K of episode 0 is \[0, 0\]"),
        ({"group_K": np.array([0, 0, 0, 1, 0])}, "episode 1 is in more than one group"),
        ({"episode_K": np.array([0, 0, 1, 1, 3])}, "episode_K holds 0 to 3; truncated_E has 3"),
        ({"truncated_E": np.zeros(4, bool)}, "episode 3 has no turn"),
        ({"format_valid_K": np.ones(4, bool)}, r"format_valid_K has shape \(4,\)"),
        ({"group_K": np.zeros(5)}, "group_K holds float64, not integers"),
        ({"parts": {"outcome": np.full(5, np.inf)}}, "unscorable is NaN"),
        ({"parts": {}}, "name at least one reward"),
        ({"penalty_K": np.full(5, -0.1)}, "at least 0"),
        ({"tokens_K": np.full(5, -1)}, "cannot be negative"),
        ({"anchor_text": ("x",)}, "1 entries for 5 turns"),
    ],
)
def test_an_inconsistent_batch_is_refused(batch, changes, told):
    with pytest.raises(ValueError, match=told):
        replace(batch, **changes)
    with pytest.raises(ValueError, match="at least one turn"):
        TurnBatch.from_episodes([], groups=[])


def test_a_batch_cannot_be_written_to(batch):
    with pytest.raises(ValueError, match="read-only"):
        batch.turn_K[0] = 1


def test_recipes_are_checked_without_torch():
    code = """if True:
        import sys
        from manyturn.trainers.credit.pipeline import CreditConfig
        from manyturn.trainers.learn.objective.objective import OBJECTIVES
        CreditConfig(rewards=("invalid_penalty",), advantage="gigpo")
        OBJECTIVES.parse({"name": "clip", "kl": {"coef": 0.01}})
        sys.exit("torch" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
