"""Losses, aggregations and estimators against golden files."""

import torch
from golden_frame import Case, close, golden, tensor

from manyturn.trainers.objectives.aggregate import Denominators, aggregate
from manyturn.trainers.objectives.clip import ClipConfig
from manyturn.trainers.objectives.kl import kl, kl_in_reward
from manyturn.trainers.objectives.objective import objective


@golden("ppo_loss")
def check_ppo_loss(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    mode = params["loss_agg_mode"]
    mask = tensor(inputs["response_mask"])
    width = mask.shape[1]
    config = ClipConfig(
        low=params["clip_ratio_low"],
        high=params["clip_ratio_high"],
        dual=params["clip_ratio_c"],
        aggregation=mode,
        scale=(params["loss_scale_factor"] or width) if mode == "seq-mean-token-sum-norm" else None,
    )
    logp = tensor(inputs["log_prob"]).requires_grad_()
    weight = inputs.get("rollout_is_weights")
    loss, metrics = objective(
        config,
        logp,
        tensor(inputs["old_log_prob"]),
        tensor(inputs["advantages"]),
        mask,
        Denominators.of(mask),
        weight=None if weight is None else tensor(weight),
    )
    close(case, loss.item(), expected["loss"])
    close(case, torch.autograd.grad(loss, logp)[0], expected["grad_log_prob"])
    close(case, metrics["clip_fraction"], expected["clipfrac"])
    close(case, metrics["dual_clip_fraction"], expected["clipfrac_lower"])
    close(case, metrics["approx_kl"], expected["approx_kl"])


@golden("kl_estimators")
def check_kl_estimators(case: Case) -> None:
    ref_logp = tensor(case["inputs"]["ref_logprob"])
    for estimator, expected in case["expected"].items():
        logp = tensor(case["inputs"]["logprob"]).requires_grad_()
        value = kl(logp, ref_logp, estimator)
        close(case, value.detach(), expected["value"])
        close(case, torch.autograd.grad(value.sum(), logp)[0], expected["grad_logprob"])


@golden("kl_in_reward")
def check_kl_in_reward(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    estimator = {"kl": "k1", "mse": "k2", "low_var_kl": "k3", "abs": "abs"}[params["kl_penalty"]]
    divergence = kl(tensor(inputs["old_log_probs"]), tensor(inputs["ref_log_prob"]), estimator)
    mask = tensor(inputs["response_mask"])
    rewards, mean = kl_in_reward(tensor(inputs["token_level_scores"]), divergence, mask, params["kl_coef"])
    close(case, rewards, case["expected"]["token_level_rewards"])
    close(case, mean, case["expected"]["mean_kl"])


@golden("agg_loss_variants")
def check_agg_loss_variants(case: Case) -> None:
    x, mask = tensor(case["inputs"]["loss_mat"]), tensor(case["inputs"]["loss_mask"])
    counts = Denominators.of(mask)
    # verl-agent's seq-mean-token-sum-norm is not divided by the number of rows.
    one_row = {"verl": counts, "verl_agent": Denominators(counts.tokens, rows=1)}
    for code_base, modes in case["expected"].items():
        for mode, expected in modes.items():
            norm = mode == "seq-mean-token-sum-norm"
            ours = aggregate(x, mask, mode, one_row[code_base] if norm else counts, mask.shape[1] if norm else None)
            close(case, ours.item(), expected)
