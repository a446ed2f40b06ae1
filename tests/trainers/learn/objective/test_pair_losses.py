"""A run's step with pairs, against the loss itself: written out over pairs, through autograd, from the same weights."""

import asyncio
from itertools import permutations
from statistics import mean

import pytest
import torch
from safetensors.torch import load_file
from training_options import laid
from transformers import AutoModelForCausalLM
from two_steps import WARMED, WORLD, Trainings

from manyturn.agents.trajectories.reader import of_tables
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.learn.learner.policy_optimizer import PolicyOptimizer
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics, step_ledgers
from manyturn.trainers.run.loop.loop import train

RATE, BETA, GAMMA, STEP = 1e-3, 2.0, 0.9, 3
SETTINGS = {
    "credit.advantage.beta": BETA,
    "learner": {"lr": RATE, "lr_schedule": "constant", "minibatch": 16},
    "rollout": {"tasks": 4, "group": 4},
    "steps": STEP,
    "checkpoint_every": 1,
    "keep_tokens": True,
}


def similarity(policy, ledger, turn):
    """Log-probability of a turn's reply."""
    span = ledger.spans[turn]
    ids = torch.tensor(ledger.branches[span.branch].ids)
    logprob = policy(ids[None]).logits[0, :-1].log_softmax(-1).gather(-1, ids[1:, None])
    return logprob[span.start - 1 : span.end - 1].sum()


def returns(episode):
    """Discounted return of each turn."""
    values = [0.0]
    for turn in reversed(episode.turns):
        values.append(turn["reward"] + GAMMA * values[-1])
    return values[:0:-1]


def turn_dpo(episodes, departure):
    turns = [
        ((episode.episode["task"], turn["anchor"]), turn["action"].strip(), value, (e, k))
        for e, episode in enumerate(episodes)
        for k, (turn, value) in enumerate(zip(episode.turns, returns(episode), strict=True))
    ]
    quality = {
        (place, action): mean(value for p, a, value, _ in turns if (p, a) == (place, action))
        for place, action, *_ in turns
    }
    return preferences(
        [
            departure[one] - departure[other]
            for (place, action, _, one), (elsewhere, instead, _, other) in permutations(turns, 2)
            if place == elsewhere and quality[place, action] > quality[place, instead] + 1e-9
        ]
    )


def step_dpo(episodes, departure):
    gaps = []
    for (e, better), (o, worse) in permutations(enumerate(episodes), 2):
        if better.episode["task"] != worse.episode["task"] or total(better) <= total(worse) + 1e-9:
            continue
        for k, (ours, theirs) in enumerate(zip(better.turns, worse.turns, strict=False)):
            if ours["anchor"] != theirs["anchor"]:
                break
            if ours["action"].strip() != theirs["action"].strip():
                gaps.append(departure[e, k] - departure[o, k])
                break
    return preferences(gaps)


def copg(episodes, departure):
    whole = [sum(departure[e, k] for k in range(len(one.turns))) for e, one in enumerate(episodes)]
    losses = []
    for (e, one), (o, other) in permutations(enumerate(episodes), 2):
        if one.episode["task"] == other.episode["task"]:
            gap = whole[e] - whole[o]
            losses.append(-(total(one) - total(other) - BETA / 2 * gap) * gap)
    return torch.stack(losses).mean()


def preferences(gaps):
    return -torch.nn.functional.logsigmoid(BETA * torch.stack(gaps)).mean()


def total(episode):
    return sum(turn["reward"] for turn in episode.turns)


@pytest.fixture(scope="module")
def warmed(tmp_path_factory):
    """The folder of a tiny model that was taught."""
    return Trainings(tmp_path_factory.mktemp("taught"))._model(WARMED)


@pytest.mark.parametrize(("name", "loss"), [("turn-dpo", turn_dpo), ("step-dpo", step_dpo), ("copg", copg)])
def test_a_runs_weights_are_those_of_the_loss_over_pairs(name, loss, warmed, tmp_path):
    settings = SETTINGS | ({"credit.advantage.gamma": GAMMA} if loss is turn_dpo else {})
    config = configure(laid(stacked([WORLD, load_recipe(name)]), {"model.path": warmed, **settings}))
    asyncio.run(train(config, tmp_path / "run"))
    before, after = (tmp_path / f"run/checkpoints/step_{step:06d}" for step in (STEP - 1, STEP))
    tables = [tmp_path / f"run/{kind}/step_{STEP:06d}.parquet" for kind in ("episodes", "turns")]
    episodes = of_tables(*tables, step_ledgers(tmp_path / "run", STEP), {})
    policy, reference, expected = (
        AutoModelForCausalLM.from_pretrained(path) for path in (before / "model", warmed, after / "model")
    )

    departure = {}
    for e, episode in enumerate(episodes):
        for k in range(len(episode.turns)):
            with torch.no_grad():
                theirs = similarity(reference, episode.ledger, k)
            departure[e, k] = similarity(policy, episode.ledger, k) - theirs
    optimizer = PolicyOptimizer(policy, config.learner)
    optimizer.load_tensors(load_file(before / "learner.safetensors"))
    optimizer.begin_step(RATE)
    start = [weights.detach().clone() for weights in policy.parameters()]
    loss(episodes, departure).backward()
    optimizer.update()

    pairs = list(zip(policy.parameters(), expected.parameters(), start, strict=True))
    assert max(float((ours - theirs).detach().abs().max()) for ours, theirs, _ in pairs) < 1e-6
    assert max(float((theirs - was).detach().abs().max()) for _, theirs, was in pairs) > RATE / 10
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert [line["pair_margin"] == 0 for line in lines] == [True, False, False]
    assert all(0 < line["paired_turns"] <= 1 and 0 <= line["pairs_ranked"] <= 1 for line in lines)
