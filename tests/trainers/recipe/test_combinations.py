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
from unfit_cases import UNFIT

from manyturn.envs.contract.layers import overlay
from manyturn.envs.contract.options import UNFINISHED, ConfigError
from manyturn.envs.contract.refusals import options_in, refuse_unfit
from manyturn.envs.hosting.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.rewards.spa import SpaConfig, spa
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig
from manyturn.trainers.credit.turn_batch import TurnBatch
from manyturn.trainers.recipe.config import RunConfig, configure, parse_config

ROOT = Path(__file__).parents[3]
BASE = {"env": {"id": "manyturn/Maze-v0"}}
SPA = {"name": "spa", "completeness": "residual_to_last"}
OUTCOME_GATE = {"name": "gated", "gates": [{"threshold": 0.5}]}
CONTRIBUTION_GATE = {"name": "gated", "gates": [{"part": "contribution", "threshold": 0.5}]}
# What an advantage cannot be configured without.
OPTIONS: dict[str, dict[str, Any]] = {
    "stratified": {"stratum": "turns"},
    "spo": {"forgetting": "steady", "low": -99, "high": 99},
}
OF_GROUPS = ["grpo", "rloo", "gigpo", "loop", "opo", "stratified", "mt_grpo", "igpo", "reinforce_pp_baseline"]


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


REFUSED: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"agent": {"only_admissible": True, "format": {"name": "tagged", "think": True}}},
        r"leaves no room for the reasoning that agent\.format\.think asks for: set agent\.format\.think = false",
        {"agent": {"only_admissible": True, "format": {"name": "tagged"}}},
    ),
    (
        {"credit.rewards": ["igpo"], "agent.only_admissible": True},
        "asks how likely the true answer is as a reply, which need not be an admissible command: leave",
        {"agent.only_admissible": False},
    ),
    (
        {"agent.only_admissible": True, "warmup": {"invalid": 0.2}},
        "warmup.invalid shows how to recover from invalid replies, which agent.only_admissible makes impossible",
        {"agent.only_admissible": False},
    ),
    (
        {"agent.only_admissible": True, "engine": "vllm"},
        r"agent\.only_admissible limits replies token by token, which engine vllm cannot: take one that does",
        {"engine": "transformers"},
    ),
    (
        {"roles": {"a": "expert", "b": "random"}},
        r"\[roles\] gives every role to expert and random, and no policy would learn: name one",
        {"roles": {"a": "expert", "b": "mine"}},
    ),
    (
        {"roles": {"a": "one", "b": "other"}, "rollout": {"group": 4, "branching": {"initial": 2}}},
        "rollout.branching repeats what one policy said, .* leave one of them out",
        {"rollout": {"group": 4}},
    ),
    (
        {"credit.advantage": "gae", "value": {}, "credit.modulation": ["empg"]},
        "empg weighs turns, but gae gives credit to tokens: take an advantage of turns .*, turn_gae.* out",
        {"credit.advantage": "turn_gae"},
    ),
    (
        {"credit.modulation": ["empg", "entropy_weight"]},
        "empg and entropy_weight both weigh turns by their entropy",
        {"credit.modulation": ["empg"]},
    ),
    (
        {"credit.rewards": [SPA, OUTCOME_GATE], "progress": {}},
        "gated names the part 'outcome', which spa has paid out before it and left at 0: put it before spa, "
        r"or name a part that spa adds \(contribution, grounding\)",
        {"credit.rewards": [OUTCOME_GATE, SPA]},
    ),
    (
        {"credit.rewards": [SPA, {"name": "part_weights", "weights": {"outcome": 2.0}}], "progress": {}},
        "part_weights names the part 'outcome', which spa has paid out",
        {"credit.rewards": [{"name": "part_weights", "weights": {"outcome": 2.0}}, SPA]},
    ),
    (
        {"credit.rewards": [CONTRIBUTION_GATE, SPA], "progress": {}},
        "gated names the part 'contribution', which spa adds: put it after that stage",
        {"credit.rewards": [SPA, CONTRIBUTION_GATE]},
    ),
    (
        {"credit.advantage": "gae"},
        r"gae needs the column 'value', which a critic predicts: add a section \[value\]",
        {"value": {}},
    ),
    (
        {"credit.rewards": ["spa"]},
        r"spa needs the column 'contribution', which an estimator predicts: add a section \[progress\]",
        {"progress": {}},
    ),
    (
        {"credit.advantage": {"name": "gae", "bootstrap": True}, "credit.truncated": "left_out", "value": {}},
        r"gae\.bootstrap says how truncated episodes go on, and .* leave one of the two out",
        {"credit.truncated": "as_ended"},
    ),
    ({"value": {}}, r"\[value\] has no effect: .*; leave it out", {"credit.advantage": "gae"}),
    (
        {"learner.lora_rank": 4, "learner.lora_layers": [0, 1], "learner.states_gb": 2.0},
        r"learner\.states_gb has no effect: layer 0 learns, and there is nothing below it; leave it out",
        {"learner.lora_layers": [1, 2]},
    ),
    (
        {"learner.lr_warmup": 60},
        r"learner\.lr_warmup = 60 steps are not over in 60, .* lower it, such as to 0\.1",
        {"learner.lr_warmup": 0.1},
    ),
    (
        {"learner.stop_kl": 1.0, "learner.minibatch": 128},
        r"learner\.stop_kl has no effect: a step makes one update, .* lower learner\.minibatch = 128",
        {"learner.minibatch": 64},
    ),
    (
        {"objective": {"name": "clip", "epo": {"horizon": 61}}},
        r"objective\.epo\.horizon = 61 is a schedule of 61 steps, of which a run of 60 sees the start alone: leave it",
        {"objective": {"name": "clip", "epo": {}}},
    ),
    (
        {"columns": ["drift", "drift"]},
        "columns names drift twice: put its options into one entry",
        {"columns": []},
    ),
    (
        {"loggers": ["csv", "csv"]},
        r"loggers names csv twice, and both would write metrics\.csv: leave one out",
        {"loggers": ["csv"]},
    ),
    (
        {"loggers": ["wandb", "wandb"]},
        "loggers names wandb twice, and the run would be there twice: leave one out",
        {"loggers": ["wandb"]},
    ),
    (
        {"columns": [{"name": "drift"}]},
        "columns holds options of drift, which no stage of credit needs: leave them out",
        {"columns": []},
    ),
    (
        {"credit.advantage": {"name": "stratified", "stratum": "reward"}},
        r"stratified needs the column 'reward', which objective\.kl charges: set objective\.kl\.place",
        {"objective": {"name": "clip", "kl": {"coef": 0.1, "place": "reward"}}},
    ),
    (
        {"credit.advantage": {"name": "stratified", "stratum": "calls"}},
        "stratified needs the unknown column 'calls'.* There are belief, .*progress, reward, tool_calls, value",
        {"credit.advantage": {"name": "stratified", "stratum": "progress"}},
    ),
    (
        {"objective": {"name": "clip", "kl": {"coef": 0.1, "place": "reward"}}},
        "place = 'reward' has no effect with gigpo",
        {"credit.advantage": "reinforce_pp"},
    ),
    (
        {"credit.advantage": "reinforce_pp", "objective": {"name": "gmpo"}},
        "reinforce_pp gives credit to tokens, which gmpo averages away over a reply: take .* of turns .*gigpo",
        {"objective": {"name": "gspo"}},
    ),
    (
        {"credit.advantage": {"name": "spo", "forgetting": "steady"}, "rollout": {"group": 1, "rounds": 3}},
        "rollout.rounds = 3 plays groups again .* raise rollout.group, or leave rounds out",
        {"rollout": {"group": 2, "rounds": 3}},
    ),
    (
        {"objective": {"name": "clip", "correction": {}}, "learner.old_logprobs": "engine"},
        "objective.correction compares the engine with the learner, .* set it to 'learner'",
        {"learner.old_logprobs": "learner"},
    ),
    (
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}]}, "learner.old_logprobs": "engine"},
        "objective.reject compares the engine with the learner",
        {"objective": {"name": "clip"}},
    ),
    (
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}, {"upper": 0.2}]}},
        "objective.reject has two rules of k3 over token, of which the narrower counts alone: keep that one",
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}, {"upper": 0.2, "over": "max"}]}},
    ),
    (
        {"objective": {"name": "reinforce"}, "learner.epochs": 2},
        "learner.epochs = 2 learns from samples of an older policy, .* set it to 1, or take an objective .*clip",
        {"objective": {"name": "clip"}},
    ),
    (
        {"objective": {"name": "reinforce"}, "learner.minibatch": 127},
        "learner.minibatch = 127 makes several updates of 128 episodes, .* no ratio: set it to 128",
        {"learner.minibatch": 128},
    ),
    (
        {"credit.advantage": "grpo", "credit.rewards": [SPA], "progress": {}},
        "grpo compares full returns, which spa leaves as they are .*: set completeness = 'none', or take .*turn_gae",
        {"credit.rewards": ["spa"]},
    ),
    (
        {"rollout.group": 1},
        r"rollout\.group = 1 leaves gigpo nothing to compare an episode with: raise rollout\.group",
        {"credit.advantage": "reinforce_pp"},
    ),
    (
        {"sampling.temperature": 0.0},
        "sampling.temperature = 0 draws all episodes of a task alike, .*: set it to 1",
        {"sampling.temperature": 1.0},
    ),
    (
        {"model": {"name": "pretrained", "path": "x", "dtype": "bfloat16"}, "learner": {"lora_rank": 0}},
        "model.dtype = 'bfloat16' loses small updates: leave it at auto, or set learner.lora_rank",
        {"learner.lora_rank": 8},
    ),
    (
        {"rollout": {"group": 8, "branching": {"initial": 8}}},
        "initial = 8 leaves nothing of rollout.group = 8",
        {"rollout": {"group": 9, "branching": {"initial": 8}}},
    ),
    (
        {"rollout": {"max_turns": 1, "branching": {"initial": 2}}},
        "rollout.branching has no effect where rollout.max_turns = 1, .*: raise max_turns, or leave branching out",
        {"rollout": {"max_turns": 2, "branching": {"initial": 2}}},
    ),
    (
        {"objective": {"name": "clip", "epo": {"horizon": 60}}, "steps": 15},
        r"epo\.horizon = 60 is a schedule of 60 steps, of which a run of 15 sees the start alone: leave it out",
        {"objective": {"name": "clip", "epo": {}}},
    ),
    (
        {"credit.rewards": ["spa"], "progress": {"body": "own", "exploration": {"episodes": 8}}, "rollout.group": 8},
        r"progress\.exploration\.episodes = 8 are of one task in groups of 8, .*: give 16 or more",
        {"progress": {"body": "own", "exploration": {"episodes": 16}}},
    ),
    (
        {"rollout.horizon": {"first": 4, "by": 2, "every": 10, "last": 12}, "steps": 10},
        "every = 10 is never reached in 10 steps, .* lower it, or set rollout.max_turns",
        {"steps": 11},
    ),
    (
        {"credit.rewards": [{"name": "overlong", "max_tokens": 40, "buffer": 24, "over": "reply"}]},
        "overlong has no effect: it begins after 16 tokens of a reply, .* lower its max_tokens",
        {"sampling.max_tokens": 17},
    ),
    (
        {"credit.advantage": "grpo", "env.wrappers": [{"name": "progress_reward", "gamma": 0.9}]},
        "with gamma = 0.9 takes 0.1 x the sum of its progress off the return of each episode, which grpo compares: ",
        {"env.wrappers": ["progress_gain"]},
    ),
    (
        {"credit.advantage": "gigpo", "env.wrappers": [{"name": "progress_reward", "gamma": 0.95}]},
        "cancels in gigpo's comparison of turns, and takes 0.05 x the sum of its progress off the return .* charged",
        {"env.wrappers": [{"name": "progress_reward", "gamma": 1.0}]},
    ),
    (
        {"credit.advantage": {"name": "gigpo", "gamma": 1.0}, "env.wrappers": ["progress_reward"]},
        "to the returns of all episodes of a task and of all turns in one situation, and gigpo compares nothing else: "
        "take progress_gain",
        {"env.wrappers": ["progress_gain"]},
    ),
    (
        {"credit.advantage": "grpo", "env.wrappers": ["progress_reward"]},
        "progress_reward has no effect: with gamma = 1 it adds the same to the returns .* grpo compares nothing else",
        {"credit.advantage": "gigpo"},
    ),
    (
        {"order.kind": "asynchronous", "engine": "vllm"},
        "draws while the learner changes the weights, which engine vllm is not known to do: take .*'transformers'",
        {"engine": "transformers"},
    ),
    (
        {"order.kind": "asynchronous", "engine": {"name": "transformers", "reproducible": True}},
        "engine.reproducible = true computes in rounds that wait for the slowest of all open episodes, .* leave it out",
        {"engine": "transformers"},
    ),
    (
        {"order.kind": "asynchronous", "rollout.rounds": 2},
        "rollout.rounds = 2 plays groups for which the step's others have to end first, .*: leave rounds out",
        {"rollout.rounds": 1},
    ),
    (
        {"order.kind": "asynchronous", "rollout": {"branching": {"initial": 2}}},
        "rollout.branching forks off episodes .*: leave branching out, or leave order.kind = 'asynchronous' out",
        {"rollout": {}},
    ),
    (
        {"order.kind": "asynchronous", "learner.old_logprobs": "learner"},
        "takes episodes for the present policy's, .*: set it to 'engine', or give objective.correction",
        {"objective": {"name": "clip", "correction": {}}},
    ),
    (
        {"order.kind": "asynchronous", "objective": {"name": "reinforce"}, "learner.minibatch": 128},
        "reinforce has no ratio for what earlier weights drew, .*: take an objective with one, such as clip, or give",
        {"objective": {"name": "reinforce", "correction": {}}},
    ),
    (
        {"order.kind": "asynchronous", "learner.engine_alarm": "note"},
        "learner.engine_alarm has no effect with order.kind = 'asynchronous', .*: leave it out",
        {"learner.engine_alarm": "stop"},
    ),
    (
        {"placement.kind": "static"},
        "placement.kind = 'static' needs hosts: start some with manyturn host --port N, and name their addresses",
        {"placement.hosts": ["http://127.0.0.1:9001"]},
    ),
    (
        {"placement": {"kind": "static", "hosts": ["http://127.0.0.1:9001"]}, "env.workers": 2},
        "env.workers = 2 has no effect with placement.kind = 'static': give --workers to manyturn host",
        {"env.workers": 0},
    ),
]


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
    with pytest.raises(ConfigError, match="wishful needs the unknown column 'foresight'; There are belief"):
        run(**{"credit.advantage": "wishful"})
    run(**{"credit.advantage": "spo"})


def test_credit_alone_refuses_what_concerns_credit():
    with pytest.raises(ValueError, match="gives credit to tokens"):
        CreditConfig(advantage="reinforce_pp", modulation=("entropy_weight",))


@pytest.mark.parametrize("name", ADVANTAGES.names())
def test_modulations_are_refused_exactly_where_credit_is_of_tokens(name):
    values = {"value": [[[0.25], [0.5]], [[0.5]]]}
    batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], anchors=[["a", "b"], ["a"]], token_columns=values)
    by_token = credit(batch, CreditConfig(advantage=of(name))).token_T is not None
    with pytest.raises(ValueError, match="gives credit to tokens") if by_token else nullcontext():
        CreditConfig(advantage=of(name), modulation=("empg",))


@pytest.mark.parametrize("method", [*map(of, ADVANTAGES.names()), {"name": "gigpo", "turn_weight": 0.0}], ids=str)
def test_complete_attribution_is_refused_exactly_where_it_changes_no_credit(method):
    outcomes = [[0, 1], [0, 0, 0], [0, 0, 0, 1], [0, 0, 0]]
    values = {"value": [[[turn / 4] for turn, _ in enumerate(episode)] for episode in outcomes]}
    batch = TurnBatch.from_episodes(outcomes, [0] * 4, anchors=["xy", "xxy", "xyxy", "yxy"], token_columns=values)

    def earned(seed: int) -> np.ndarray:
        predicted_K = np.random.default_rng(seed).integers(0, 8, len(batch.turn_K)) / 4
        told = replace(batch, columns={"contribution": predicted_K})
        return advantage(spa(told, SpaConfig(completeness="residual_to_last")), method)

    idle = np.allclose(earned(0), earned(1), atol=1e-9)
    heads = {"value": {}} if method["name"].endswith("gae") else {}
    with pytest.raises(ConfigError, match="compares full returns") if idle else nullcontext():
        run(**{"credit.advantage": method, "credit.rewards": [SPA], "progress": {}, **heads})


@pytest.mark.parametrize("name", ["rloo", "opo"])
def test_a_run_with_larger_steps_than_an_on_policy_recipe_thinks_of_is_refused(name):
    """The recipe's minibatch is all of 16 x 8 episodes, the shop plays 32 x 8."""
    recipe = stacked([load_recipe("shop-tiny"), load_recipe(name)])
    with pytest.raises(ConfigError, match=r"minibatch = 128 makes several updates of 256 episodes, .*: set it to 256"):
        configure(recipe)
    assert configure(recipe, {"learner": {"minibatch": 256}}).objective.name == "reinforce"


@pytest.mark.parametrize("name", sorted({*OF_GROUPS} - {"gigpo"}))
@quick
@given(batch=batches(penalties=False))
def test_a_group_of_one_that_is_refused_would_give_no_credit(name, batch):
    """GiGPO is left out: turns of one episode in the same situation may differ in what followed, which is no comparison
    of episodes."""
    alone = {int(episode): str(episode) for episode in np.unique(batch.episode_K)}
    batch = replace(batch, group_K=batch.episode_K, group_names=alone)
    assert not advantage(batch, of(name)).any()


@pytest.mark.parametrize("name", ["gae", "turn_gae", "bilevel_gae", "spo", "reinforce_pp"])
def test_methods_without_groups_take_one_episode_of_each_task(name):
    heads = {"value": {}} if name.endswith("gae") else {}
    assert run(**{"credit.advantage": of(name), "rollout.group": 1, **heads}).rollout.group == 1


@pytest.mark.parametrize("name", OF_GROUPS)
def test_methods_of_groups_need_a_group(name):
    with pytest.raises(ConfigError, match=r"raise rollout\.group, .*\(bilevel_gae, gae, reinforce_pp, spo, turn_gae\)"):
        run(**{"credit.advantage": of(name), "rollout.group": 1})
    run(**{"credit.advantage": of(name), "rollout.group": 2})


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


def open_for(config: RunConfig) -> InlineSeats:
    return InlineSeats(config.env.id, config.env.args, config.env.wrappers)


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
            config = parse_config(values, UNFINISHED)
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
