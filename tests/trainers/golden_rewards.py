"""Reward stages against golden files."""

from dataclasses import replace
from typing import Any

import numpy as np
from golden_frame import Case, close, golden

from manyturn.trainers.credit.advantages.gae import GaeConfig, gae
from manyturn.trainers.credit.batch.reply_tokens import token_rewards, whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.rewards.gated import GatedConfig, gated
from manyturn.trainers.credit.rewards.overlong import OverlongConfig, overlong
from manyturn.trainers.credit.rewards.rubric import RubricConfig, rubric
from manyturn.trainers.credit.rewards.spa import SpaConfig, spa

EQUALITIES = ("opens", "closes")  # no case lies exactly on a threshold


def by_episode(batch: TurnBatch, value_K: np.ndarray) -> list[list[float]]:
    return [value_K[batch.episode_K == episode].tolist() for episode in range(len(batch.truncated_E))]


@golden("gra_formula")
def check_gra(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    if "level_rewards_high_to_low" in inputs:
        check_gra_chain(case)
        return
    steps = inputs["step_rewards"]
    outcomes = [[*np.zeros(len(row) - 1), r] for row, r in zip(steps, inputs["outcome_reward"], strict=True)]
    batch = TurnBatch.from_episodes({"outcome": outcomes, "step": steps}, groups=[0] * len(steps))
    close(case, batch.episode_return_E(), expected["direct_accumulation_total"])
    for equal in EQUALITIES:
        rewarded, _ = gated(batch, GatedConfig(gates=({"threshold": params["threshold"]},), equal=equal), None)
        for ours, theirs in zip(by_episode(batch, rewarded.batch.parts["step"]), expected["gated"], strict=True):
            close(case, ours, theirs["gated_step_rewards"])
        close(case, rewarded.batch.episode_return_E(), [row["total"] for row in expected["gated"]])


def check_gra_chain(case: Case) -> None:
    levels_EL = np.array(case["inputs"]["level_rewards_high_to_low"])
    names = [f"level {number}" for number in range(levels_EL.shape[1])]
    parts = {name: levels_EL[:, [number]].tolist() for number, name in enumerate(names)}
    batch = TurnBatch.from_episodes(parts, groups=[0] * len(levels_EL))
    thresholds = case["params"]["thresholds_high_to_low"]
    gates = tuple({"part": name, "threshold": t} for name, t in zip(names, thresholds, strict=False))
    for equal in EQUALITIES:
        rewarded, _ = gated(batch, GatedConfig(gates=gates, equal=equal), None)
        close(case, np.stack([rewarded.batch.parts[name] for name in names], axis=1), case["expected"]["kept"])
        close(case, rewarded.batch.episode_return_E(), case["expected"]["total"])


@golden("rubric")
def check_rubric(case: Case) -> None:
    """Their successes are not divided by the best score of the task, whatever is asked for."""
    inputs, params = case["inputs"], case["params"]
    parts = {"outcome": [[0.0, o] for o in inputs["outcomes"]], "rubric": [[r / 2, r / 2] for r in inputs["rubric"]]}
    batch = TurnBatch.from_episodes(parts, groups=[0] * len(inputs["outcomes"]))
    divided = params["normalised"] and params["over"] == "all"
    mixed, _ = rubric(batch, RubricConfig(share=params["share"], over=params["over"], normalised=divided), None)
    close(case, mixed.episode_return_E(), case["expected"]["rewards"])


@golden("spa_rl_data")
def check_spa_released(case: Case) -> None:
    params, rollouts = case["params"], case["inputs"]["trajectories"]
    # Nothing is observed after the last turn. It is entered as not understood, and earns its share all the same.
    valid = [[params["fail_marker"] not in seen for seen in t["observations"][1:]] + [False] for t in rollouts]
    batch = TurnBatch.from_episodes(
        [[*np.zeros(len(row) - 1), t["final_reward"]] for row, t in zip(valid, rollouts, strict=True)],
        groups=[t["task_id"] for t in rollouts],
        understood=valid,
    )
    paid = spa(batch, SpaConfig(form="released", beta=params["grounding_ok"]))
    for ours, theirs in zip(by_episode(paid, paid.reward_K), case["expected"]["per_turn_reward"], strict=True):
        close(case, ours, theirs)


@golden("spa_step_ppo_rewards")
def check_spa_step_ppo(case: Case) -> None:
    """Every position is a token, and a step ends at the last position of a run of the mask.

    The code multiplies the score of step k of n by n - 1 - k, which ``spa`` leaves out, so that it is done here.
    """
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    mask_BL = np.array(inputs["step_mask"])
    B, L = mask_BL.shape
    scores, tokens = [], []
    for mask_L, row in zip(mask_BL, inputs["step_scores"], strict=True):
        ends = np.flatnonzero(mask_L & ~np.append(mask_L[1:], 0))
        scores.append([score * (len(row) - 1 - k) for k, score in enumerate(row)] + [0.0])
        tokens.append(np.diff([-1, *ends, L - 1]).tolist())
    kl_BL = np.array(inputs["logprobs"]) - np.array(inputs["ref_logprobs"])

    def batch(weight_BL: np.ndarray) -> TurnBatch:
        columns = {"reward": -params["kl_coef"] * kl_BL * weight_BL, "value": np.array(inputs["values"]) * weight_BL}
        plain = TurnBatch.from_episodes(scores, groups=range(B), tokens=tokens)
        return replace(plain, token_columns={name: values.ravel() for name, values in columns.items()})

    close(case, token_rewards(batch(np.ones((B, L)))).reshape(B, L), expected["token_rewards"])
    masked = batch(mask_BL)
    target_T = gae(masked, GaeConfig(gamma=params["gamma"], lam=params["lam"])).targets_T
    assert target_T is not None
    close(case, target_T.reshape(B, L), expected["returns"])
    advantage_T = whitened(target_T - masked.token_column("value"), mask_BL.ravel())
    said_T = mask_BL.ravel() > 0
    close(case, advantage_T[said_T], np.array(expected["advantages"]).ravel()[said_T])


@golden("dapo_overlong")
def check_overlong(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    lengths: list[int] = inputs["response_lengths"]
    options: dict[str, Any] = {
        "max_tokens": params["max_resp_len"],
        "buffer": params["overlong_buffer_len"],
        "factor": params["penalty_factor"],
    }
    replies = TurnBatch.from_episodes(
        [[inputs["base_reward"]]] * len(lengths), groups=[0] * len(lengths), tokens=[[n] for n in lengths]
    )
    episodes = TurnBatch.from_episodes(
        [[0.0, inputs["base_reward"]]] * len(lengths),
        groups=[0] * len(lengths),
        tokens=[[n // 3, n - n // 3] for n in lengths],
    )
    for batch, over in ((replies, "reply"), (replies, "episode"), (episodes, "episode")):
        punished = overlong(batch, OverlongConfig(over=over, **options)).batch
        close(case, punished.episode_return_E(), case["expected"]["reward"])
