"""Limits of length that no reply ever meets, so that DAPO's recipe trains as if it had none."""

import asyncio
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.option_conflicts import refuse_unfit
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.trainers.credit.batch.token_limits import longest
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

ODD = f"{Path(__file__).parents[2].joinpath('odd_replies.py')}:OddReplies"


# Enough for some replies that end by themselves: where all are cut, all are penalised alike.
SPEAKING = {"episodes": 24, "must_succeed": False, "batch": 4, "max_updates": 18, "check_every": 18, "lr": 1e-2}


def of(rewards, **changes):
    credit, once = {"advantage": "grpo", "rewards": rewards}, {"steps": 1, "evaluation": {"limit": 1}}
    return short_run(env={"id": ODD}, credit=credit, **once, **changes)


def test_replies_of_the_dapo_recipe_meet_its_limit(tmp_path):
    rewards, weights = load_recipe("dapo")["credit"]["rewards"], {}
    for name, stages in {"with": rewards, "without": []}.items():
        weights[name] = asyncio.run(train(of(stages, warmup=SPEAKING), tmp_path / name))["weights"]
    [line] = [line for line in read_metrics(tmp_path / "with") if line["phase"] == "train"]
    assert line["overlong_share"] >= line["cut"] > 0
    assert weights["with"] != weights["without"]


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"sampling": {"max_tokens": 6}}, 18),  # the environment's three turns
        ({"rollout": {"max_turns": 2, "tasks": 3, "group": 3}}, 12),
        ({"agent": {"max_context": 16}}, 16),
        ({"agent": {"max_context": 16, "context": {"name": "window", "turns": 0}}}, 18),
    ],
)
def test_an_episode_has_no_more_tokens_than_turns_and_context_allow(changes, most):
    facts = InlineSeats(ODD, {}, (), limit=1).facts
    config = of([], **changes)
    assert longest(config, facts) == {"reply": 6, "episode": most}
    with pytest.raises(ConfigError, match=rf"begins after {most} tokens of an episode's replies, .* allows {most} \("):
        refuse_unfit(of([{"name": "overlong", "max_tokens": most + 2, "buffer": 2}], **changes), facts)
    refuse_unfit(of([{"name": "overlong", "max_tokens": most + 1, "buffer": 2}], **changes), facts)


def test_a_limit_that_no_environment_lets_a_run_reach_is_refused_before_it_is_open():
    with pytest.raises(ConfigError, match=r"begins after 16384 tokens .*\(100 turns, sampling.max_tokens = 6, agent"):
        of([{"name": "overlong", "max_tokens": 20480, "buffer": 4096}])
