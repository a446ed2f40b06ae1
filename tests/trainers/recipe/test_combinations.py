"""Combinations that cannot work are refused before a run begins, not after its warm-up, with what would do instead.

Next to each refusal stands its neighbour that must be let through: a rule that refuses too much is as wrong.
"""

import ast
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from credit_batches import advantage, batches, quick
from error_page import AGAIN, ROWS, refusal_row
from hypothesis import given
from refused_inner_cases import REFUSED_OF_INNER
from refused_learning_cases import REFUSED_OF_LEARNING, SPA
from refused_play_cases import REFUSED_OF_PLAY
from unfit_cases import UNFIT

from manyturn.envs.contract.options.option_conflicts import options_in, refuse_unfit
from manyturn.envs.contract.options.options import UNFINISHED, ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.rewards.spa import SpaConfig, spa
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig
from manyturn.trainers.recipe.config import RunConfig, configure, parse_config

REFUSED = REFUSED_OF_PLAY + REFUSED_OF_LEARNING + REFUSED_OF_INNER

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[3]
BASE = {"env": {"id": "manyturn/Maze-v0"}}
# What an advantage cannot be configured without.
OPTIONS: dict[str, dict[str, Any]] = {
    "stratified": {"stratum": "turns"},
    "spo": {"forgetting": "steady", "low": -99, "high": 99},
}
OF_GROUPS = ["grpo", "rloo", "loop", "opo", "stratified", "mt_grpo", "igpo", "reinforce_pp_baseline", "rtmc"]
OF_GROUPS += ["step_dpo", "copg"]
NEEDED = {name: {"value": {}} for name in ("gae", "turn_gae", "bilevel_gae", "dual_gae")}
PAIRED = {"name": "reinforce", "aggregation": "token-sum", "reference": True}
NEEDED |= {
    name: {"objective": PAIRED, "learner.minibatch": 128} for name in ("turn_dpo", "step_dpo", "agent_q", "copg")
}
OF_SITUATIONS = ["gigpo", "graphgpo", "g2po", "hgpo", "situation_gae", "turn_dpo"]


def of(name: str) -> dict[str, Any]:
    return {"name": name, **OPTIONS.get(name, {})}


def sections(**entries: Any) -> dict[str, Any]:
    """``{"rollout.group": 1}`` as nested sections."""
    nested: dict[str, Any] = {}
    for name, value in entries.items():
        for key in reversed(name.split(".")):
            value = {key: value}
        nested = overlay(nested, value)
    return nested


def run(**entries: Any) -> RunConfig:
    return parse_config(overlay(BASE, sections(**{"credit.advantage": "gigpo", **entries})))


@pytest.mark.parametrize(("entries", "told", "mend"), REFUSED)
def test_a_senseless_combination_is_refused_and_its_mend_works(entries, told, mend):
    with pytest.raises(ConfigError, match=told) as refusal:
        run(**entries)
    assert "\n" not in str(refusal.value)
    assert refusal_row(entries, str(refusal.value), mend) in ROWS, AGAIN
    run(**{**entries, **mend})


def test_a_column_that_nobody_supplies_is_refused(monkeypatch):
    class WishfulConfig(StageConfig):
        needs = frozenset({"foresight"})
        name: Literal["wishful"] = "wishful"

    monkeypatch.setattr(ADVANTAGES, "_entries", dict(ADVANTAGES._entries))
    ADVANTAGES.register(WishfulConfig)(lambda batch, config: batch.column("foresight"))
    with pytest.raises(ConfigError, match="wishful needs the unknown column 'foresight'; there are action, belief"):
        run(**{"credit.advantage": "wishful"})
    run(**{"credit.advantage": "spo"})


def test_credit_alone_refuses_what_concerns_credit():
    with pytest.raises(ValueError, match="gives credit to tokens"):
        CreditConfig(advantage="reinforce_pp", modulation=("entropy_weight",))


@pytest.mark.parametrize("name", ADVANTAGES.names())
def test_modulations_are_refused_exactly_where_credit_is_of_tokens(name):
    values, actions = (
        {"value": [[[0.25], [0.5]], [[0.5]]]},
        {name: [[0, 1], [1]] for name in ("action", "drawer", "tempered", "implicit", "reference")},
    )
    batch = TurnBatch.from_episodes(
        [[0, 1], [0]], [0, 0], anchors=[["a", "b"], ["a"]], columns=actions, token_columns=values
    )
    by_token = credit(batch, CreditConfig(advantage=of(name))).token_T is not None
    with pytest.raises(ValueError, match="gives credit to tokens") if by_token else nullcontext():
        CreditConfig(advantage=of(name), modulation=("empg",))


OF_BATCHES = sorted({*ADVANTAGES.names()} - {"forks", "pav", "arbitrary_entropy"})  # which need rollouts of their own


@pytest.mark.parametrize("method", [*map(of, OF_BATCHES), {"name": "gigpo", "turn_weight": 0.0}], ids=str)
def test_complete_attribution_is_refused_exactly_where_it_changes_no_credit(method):
    outcomes = [[0, 1], [0, 0, 0], [0, 0, 0, 1], [0, 0, 0]]
    values = {"value": [[[turn / 4] for turn, _ in enumerate(episode)] for episode in outcomes]}
    batch = TurnBatch.from_episodes(outcomes, [0] * 4, anchors=["xy", "xxy", "xyxy", "yxy"], token_columns=values)

    def earned(seed: int) -> np.ndarray:
        predicted_K = np.random.default_rng(seed).integers(0, 8, len(batch.turn_K)) / 4
        columns = {"action": batch.turn_K + (batch.turn_K > 0) * (batch.episode_K // 2), "drawer": batch.episode_K}
        columns |= dict.fromkeys(("implicit", "reference"), np.zeros(len(batch.turn_K)))
        told = replace(batch, columns={**columns, "contribution": predicted_K})
        return advantage(spa(told, SpaConfig(completeness="residual_to_last")), method)

    # Pairs see an order alone, which several seeds change.
    idle = all(np.allclose(earned(0), earned(seed), atol=1e-9) for seed in range(1, 8))
    needed = NEEDED.get(method["name"], {})
    with pytest.raises(ConfigError, match=r"compares full returns|has paid out") if idle else nullcontext():
        run(**{"credit.advantage": method, "credit.rewards": [SPA], "progress": {}, **needed})


@pytest.mark.parametrize("name", ["rloo", "opo"])
def test_a_run_with_larger_steps_than_an_on_policy_recipe_thinks_of_is_refused(name):
    """The recipe's minibatch is all of 16 x 8 episodes, the shop plays 32 x 8."""
    recipe = stacked([load_recipe("shop-tiny"), load_recipe(name)])
    with pytest.raises(ConfigError, match=r"minibatch = 128 makes several updates of 256 episodes, .*: set it to 256"):
        configure(recipe)
    assert configure(recipe, {"learner": {"minibatch": 256}}).objective.name == "reinforce"


@pytest.mark.parametrize("name", OF_GROUPS)
@quick
@given(batch=batches(penalties=False))
def test_a_group_of_one_that_is_refused_would_give_no_credit(name, batch):
    """GiGPO and its like are left out: turns of one episode in the same situation may differ in what followed, which is
    no comparison of episodes."""
    alone = {int(episode): str(episode) for episode in np.unique(batch.episode_K)}
    batch = replace(batch, group_K=batch.episode_K, group_names=alone)
    assert not advantage(batch, of(name)).any()


@pytest.mark.parametrize(
    "name", ["gae", "turn_gae", "bilevel_gae", "dual_gae", "spo", "reinforce_pp", "psr_nsr", "riskpo"]
)
def test_methods_without_groups_take_one_episode_of_each_task(name):
    assert run(**{"credit.advantage": of(name), "rollout.group": 1, **NEEDED.get(name, {})}).rollout.group == 1


@pytest.mark.parametrize("name", OF_GROUPS + OF_SITUATIONS)
def test_methods_of_groups_need_a_group(name):
    with pytest.raises(
        ConfigError,
        match=r"raise rollout\.group, .*\(bilevel_gae, dual_gae, gae, psr_nsr, reinforce_pp, riskpo, spo, turn_gae\)",
    ):
        run(**{"credit.advantage": of(name), "rollout.group": 1, **NEEDED.get(name, {})})
    run(**{"credit.advantage": of(name), "rollout.group": 2, **NEEDED.get(name, {})})


def test_a_raw_return_may_be_learnt_from_alone():
    assert run(**{"credit.advantage": {"name": "rloo", "singleton": "raw"}, "rollout.group": 1})


def test_a_change_on_top_may_mend_a_recipe():
    recipe = sections(**{"credit.advantage": "grpo", "rollout.group": 1})
    with pytest.raises(ConfigError, match="nothing to compare"):
        configure(recipe, BASE)
    assert configure(recipe, BASE, {"rollout": {"group": 4}}).rollout.group == 4
    with pytest.raises(ConfigError, match="nothing to compare"):
        configure(recipe, BASE, {"rollout": {"tasks": 4}})


# ---- with the environment


def open_for(config: RunConfig) -> EnvFacts:
    return InlineSeats(config.env.id, config.env.args, config.env.wrappers).facts


@pytest.mark.parametrize(("entries", "told", "mend"), UNFIT)
def test_what_the_environment_cannot_give_is_refused_before_the_warm_up(entries, told, mend):
    config = run(**entries)
    with pytest.raises(ConfigError, match=told) as refusal:
        refuse_unfit(config, open_for(config))
    assert "\n" not in str(refusal.value)
    assert refusal_row(entries, str(refusal.value), mend) in ROWS, AGAIN
    mended = run(**{**entries, **mend})
    refuse_unfit(mended, open_for(mended))


def reasons() -> dict[tuple[str, int], int]:
    """What functions that refuse may return: (file, last line of the statement) -> its first line."""
    found = {}
    for path in (ROOT / "manyturn" / "trainers").rglob("*.py"):
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        for node in (inner for f in functions if refuses(f.name) for inner in ast.walk(f)):
            if isinstance(node, ast.Return) and not (isinstance(node.value, ast.Constant) and not node.value.value):
                found[str(path), node.end_lineno] = node.lineno
    return found


def refuses(function: str) -> bool:
    return function.lstrip("_").startswith("refuse")


def test_no_reason_to_refuse_is_without_a_test():
    """A reason that is never given would be one that cannot be."""
    given = set()

    def trace(frame, event, value):
        if event == "return" and isinstance(value, str):
            given.add((frame.f_code.co_filename, frame.f_lineno))
        return trace if refuses(frame.f_code.co_name) else None

    for cases, opened in ((REFUSED, False), (UNFIT, True)):
        for entries, _, _ in cases:
            values = overlay(BASE, sections(**{"credit.advantage": "gigpo", **entries}))
            try:
                config = parse_config(values, UNFINISHED)
            except ConfigError:
                continue  # a section by itself cannot be so
            env = open_for(config) if opened else None
            sys.settrace(trace)
            try:
                for options in options_in(config):
                    options.refuse(config, env)
                with suppress(ConfigError):
                    parse_config(values)
            finally:
                sys.settrace(None)
    possible = reasons()
    assert len(possible) > 20
    silent = [
        f"{file}:{first}"
        for (file, last), first in possible.items()
        if not any(where == file and first <= line <= last for where, line in given)
    ]
    assert not silent, f"neither REFUSED nor UNFIT has a case for {', '.join(silent)}"
