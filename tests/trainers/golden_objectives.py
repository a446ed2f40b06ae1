"""Losses, regularisers, corrections and value losses against golden files. A row of a file is one reply here."""

from functools import partial
from typing import Any

import numpy as np
import torch
from golden_frame import Case, close, golden, tensor

from manyturn.trainers.learn.heads.heads import progress_loss, value_loss
from manyturn.trainers.learn.heads.implicit_reward import pairs, preference
from manyturn.trainers.learn.objective.aggregate import Denominators, aggregate
from manyturn.trainers.learn.objective.epo import (
    EntropyHistory,
    EntropyRange,
    EpoConfig,
    epo,
    paper_weight,
    released_weight,
    turn_mean,
)
from manyturn.trainers.learn.objective.kl import KlConfig, adapted, kl, kl_in_reward
from manyturn.trainers.learn.objective.objective import ObjectiveConfig, RegulariserState, Tokens, objective
from manyturn.trainers.learn.objective.objectives.cispo import CispoConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.objective.objectives.entropy_balanced import EntropyBalancedConfig, entropy_balanced
from manyturn.trainers.learn.objective.objectives.gmpo import GmpoConfig
from manyturn.trainers.learn.objective.objectives.gspo import GspoConfig
from manyturn.trainers.learn.objective.objectives.reinforce import ReinforceConfig
from manyturn.trainers.learn.objective.objectives.sapo import SapoConfig
from manyturn.trainers.learn.objective.objectives.topr import ToprConfig
from manyturn.trainers.learn.objective.rollout_correction import (
    RejectConfig,
    Sequences,
    TisConfig,
    importance_weights,
    keep_mask,
)
from manyturn.trainers.learn.passes.forward import reply_ends


def one_reply(mask: torch.Tensor) -> torch.Tensor:
    """Each row is one reply."""
    return torch.where(mask.bool(), 0, -1)


def tokens_of(case: Case, **changes: Any) -> tuple[Tokens, torch.Tensor]:
    """A file's inputs as tokens, and the log-probabilities whose gradient is compared."""
    inputs = case["inputs"]
    logp = tensor(inputs["log_prob"]).requires_grad_()
    mask = tensor(inputs["completion_mask" if "completion_mask" in inputs else "response_mask"])
    advantage = tensor(inputs["advantages"])
    advantage = advantage if advantage.dim() == 2 else advantage[:, None].expand(mask.shape)
    return Tokens(logp, tensor(inputs["old_log_prob"]), advantage, mask)._replace(**changes), logp


def check_loss(
    case: Case, config: ObjectiveConfig, counts: Denominators | None = None, **changes: Any
) -> dict[str, torch.Tensor]:
    """Loss and gradient of the file equal ours; returns our metrics."""
    tokens, logp = tokens_of(case, **changes)
    loss, metrics = objective(config, tokens, counts or Denominators.of(one_reply(tokens.mask)))
    close(case, loss.item(), case["expected"]["loss"])
    close(case, torch.autograd.grad(loss, logp)[0], case["expected"]["grad_log_prob"])
    return metrics


@golden("ppo_loss")
def check_ppo_loss(case: Case) -> None:
    params, expected = case["params"], case["expected"]
    mode, width = params["loss_agg_mode"], len(case["inputs"]["response_mask"][0])
    config = ClipConfig(
        low=params["clip_ratio_low"],
        high=params["clip_ratio_high"],
        dual=params["clip_ratio_c"],
        aggregation=mode,
        scale=(params["loss_scale_factor"] or width) if mode == "seq-mean-token-sum-norm" else None,
    )
    weight = case["inputs"].get("rollout_is_weights")
    metrics = check_loss(case, config, weight=None if weight is None else tensor(weight))
    close(case, metrics["clip_fraction"], expected["clipfrac"])
    close(case, metrics["dual_clip_fraction"], expected["clipfrac_lower"])
    close(case, metrics["approx_kl"], expected["approx_kl"])


def bounds(case: Case) -> dict[str, float]:
    return {"low": case["params"]["clip_ratio_low"], "high": case["params"]["clip_ratio_high"]}


@golden("gspo_loss")
def check_gspo(case: Case) -> None:
    metrics = check_loss(case, GspoConfig(**bounds(case)))
    close(case, metrics["clip_fraction"], case["expected"]["clipfrac"])
    close(case, metrics["approx_kl"], case["expected"]["approx_kl"])


@golden("gmpo_loss")
def check_gmpo(case: Case) -> None:
    metrics = check_loss(case, GmpoConfig(**bounds(case)))
    close(case, metrics["clip_fraction"], case["expected"]["clipfrac"])
    close(case, metrics["approx_kl"], case["expected"]["approx_kl"])


@golden("cispo_loss")
def check_cispo(case: Case) -> None:
    metrics = check_loss(case, CispoConfig(**bounds(case)))
    close(case, metrics["clip_fraction"], case["expected"]["clipfrac"])
    close(case, metrics["approx_kl"], case["expected"]["approx_kl"])


@golden("sapo_loss")
def check_sapo(case: Case) -> None:
    config = SapoConfig(tau_good=case["params"]["tau_pos"], tau_bad=case["params"]["tau_neg"])
    close(case, check_loss(case, config)["approx_kl"], case["expected"]["approx_kl"])


@golden("aepo_loss_thirdparty")
def check_entropy_balanced(case: Case) -> None:
    """Their loss is ours, with two things that stand elsewhere here: advantages scaled by entropy, and the dual clip.

    Their gradient differs in one place, and is the reverse of the paper there: good tokens above the upper bound lose
    it where their entropy is high, and keep it where it is low. Ours keep it.
    """
    params, expected = case["params"], case["expected"]
    tokens, logp = tokens_of(case)
    mask, entropy = tokens.mask.bool(), tensor(case["inputs"]["entropy"])
    z = (entropy - entropy[mask].mean()) / entropy[mask].std()
    advantage = tokens.advantage * (1 + params["entropy_adv_weight"] * z)
    found = entropy_balanced(tokens._replace(advantage=advantage), EntropyBalancedConfig(**bounds(case)))
    dual = torch.where(advantage < 0, -params["clip_ratio_c"] * advantage, torch.inf)
    loss = found.loss.minimum(dual)[mask].mean()
    close(case, loss.item(), expected["loss"])
    close(case, found.figures["clip_fraction"][mask].mean(), expected["clipfrac"])
    close(case, found.figures["approx_kl"][mask].mean(), expected["approx_kl"])
    above = (advantage > 0) & (tokens.log_ratio.exp() > 1 + params["clip_ratio_high"]) & (z > 0)
    close(case, torch.autograd.grad(loss, logp)[0].masked_fill(above, 0.0), expected["grad_log_prob"])


@golden("topr_thirdparty")
def check_topr(case: Case) -> None:
    """ROLL tapers by the score's sign and weighs by an advantage of any sign: here that is a sign times a weight."""
    tokens, _ = tokens_of(case)
    sign = torch.where(tensor(case["inputs"]["episode_scores"]) > 0, 1.0, -1.0)[:, None].expand(tokens.mask.shape)
    check_loss(case, ToprConfig(ratio="token"), advantage=sign, weight=sign * tokens.advantage)
    # The paper's weight of a whole reply is what the gradient by lp of a reply of sign -1 is multiplied by.
    tokens, logp = tokens_of(case, advantage=sign)
    config = ToprConfig(aggregation="token-sum")
    loss, _ = objective(config, tokens, Denominators.of(one_reply(tokens.mask)))
    weight = -sign * torch.autograd.grad(loss, logp)[0]
    expected = tensor(case["expected"]["paper_sequence_level_weight"])[:, None] * tokens.mask
    close(case, weight, expected)


def check_loop_loss(case: Case) -> None:
    """The losses of ``loop.json``; its advantages are checked where advantages are."""
    inputs, params = case["inputs"], case["params"]
    eps, logp = params["ppo_epsilon"], tensor([inputs["new_log_probs"]]).requires_grad_()
    mean: Any = {"aggregation": "seq-mean-token-mean"}
    config: ObjectiveConfig = ReinforceConfig(**mean)
    if params["do_ppo_clipping"]:
        ratio = {"pg_per_token": "token", "pg_per_trajectory": "sequence"}[params["loss_type"]]
        config = ClipConfig(low=eps / (1 + eps), high=eps, dual="off", ratio=ratio, **mean)
    mask = torch.ones_like(logp)
    tokens = Tokens(logp, tensor([inputs["old_log_probs"]]), inputs["advantage"] * mask, mask)
    loss, _ = objective(config, tokens, Denominators.of(one_reply(mask)))
    close(case, loss.item(), case["expected"]["loss"])
    close(case, torch.autograd.grad(loss, logp)[0][0], case["expected"]["grad_new_log_probs"])


@golden("trl_grpo_loss")
def check_trl(case: Case) -> None:
    """TRL's loss types are combinations of ours: a policy loss, an aggregation, and whose tokens are counted."""
    inputs, params = case["inputs"], case["params"]
    clip = {"low": params["epsilon_low"], "high": params["epsilon_high"], "dual": params["delta"] or "off"}
    norm = {"aggregation": "seq-mean-token-sum-norm", "scale": params["max_completion_length"]}
    name = params["loss_type"]
    regularisers: dict[str, Any] = {}
    if params["beta"]:
        regularisers["kl"] = {"coef": params["beta"], "estimator": "k3"}
    if params["entropy_coef"]:
        regularisers["entropy"] = {"coef": params["entropy_coef"]}
    config: ObjectiveConfig
    match name, params["importance_sampling_level"]:
        case "grpo", "token":
            config = ClipConfig(**clip, aggregation="seq-mean-token-mean", **regularisers)
        case "grpo", "sequence":
            config = GspoConfig(low=clip["low"], high=clip["high"], **regularisers)
        case "luspo", "sequence":
            # Its entropy term is a mean over tokens, unlike its policy loss.
            said = tensor(inputs["entropy"])[tensor(inputs["completion_mask"]) > 0]
            bonus = params["entropy_coef"] * said.mean().item()
            case = {**case, "expected": {**case["expected"], "loss": case["expected"]["loss"] + bonus}}
            config = GspoConfig(low=clip["low"], high=clip["high"], aggregation="seq-mean-token-sum")
        case "dr_grpo", _:
            config = ClipConfig(**clip, **norm, **regularisers)
        case "bnpo" | "dapo", _:
            config = ClipConfig(**clip, **regularisers)
        case "cispo", _:
            config = CispoConfig(low="off", high=params["epsilon_high"] - 1, **regularisers)
        case "sapo", _:
            config = SapoConfig(
                tau_good=params["sapo_temperature_pos"], tau_bad=params["sapo_temperature_neg"], **regularisers
            )
    rows = one_reply(tensor(inputs["completion_mask"]))
    counts = Denominators.of(rows)
    if name in ("dapo", "cispo"):
        counts = Denominators(int(params["num_items_in_batch"]), counts.sequences)
    check_loss(case, config, counts, ref_logp=tensor(inputs["ref_log_prob"]), entropy=tensor(inputs["entropy"]))


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


@golden("adaptive_kl_controller")
def check_adaptive_kl(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    coef = params["init_kl_coef"]
    config = KlConfig(coef=coef, target=params["target_kl"], horizon=params["horizon"])
    ours = []
    for divergence, sequences in zip(inputs["current_kl"], inputs["n_steps"], strict=True):
        coef = adapted(coef, divergence, sequences, config)
        ours.append(coef)
    close(case, ours, case["expected"]["kl_coef_after_each_update"])


@golden("agg_loss_variants")
def check_agg_loss_variants(case: Case) -> None:
    x, mask = tensor(case["inputs"]["loss_mat"]), tensor(case["inputs"]["loss_mask"])
    counts = Denominators.of(one_reply(mask))
    # verl-agent's seq-mean-token-sum-norm is not divided by the number of rows.
    one_row = {"verl": counts, "verl_agent": Denominators(counts.tokens, sequences=1)}
    for code_base, modes in case["expected"].items():
        for mode, expected in modes.items():
            norm = mode == "seq-mean-token-sum-norm"
            divisors, scale = (one_row[code_base], mask.shape[1]) if norm else (counts, None)
            close(case, aggregate(x, one_reply(mask), mode, divisors, scale).item(), expected)


def flat(mask: list[list[int]], *values: list[list[float]]) -> tuple[np.ndarray, Sequences, list[np.ndarray]]:
    """The mask, the sequences of its tokens, and values at its tokens."""
    keep = np.array(mask) > 0
    rows = np.broadcast_to(np.arange(len(keep))[:, None], keep.shape)
    return keep, Sequences.of(rows[keep]), [np.array(value)[keep] for value in values]


@golden("tis")
def check_tis(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    keep, sequences, (learner, engine) = flat(
        inputs["response_mask"], inputs["train_old_log_prob"], inputs["rollout_log_prob"]
    )
    *floor, cap = (float(bound) for bound in str(params["threshold"]).split("_"))
    config = TisConfig(
        level=params["level"], cap=cap, floor=floor[0] if floor else None, normalise=params["batch_normalize"]
    )
    weight = np.zeros(keep.shape)
    weight[keep] = importance_weights(config, learner - engine, sequences)
    close(case, weight, case["expected"]["weights"])


@golden("rollout_rejection_mask")
def check_rejection(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    keep, sequences, (log_ratio,) = flat(inputs["response_mask"], inputs["log_ratio"])
    rules = []
    for option, threshold in zip(params["options"].split(","), str(params["threshold"]).split(","), strict=True):
        *over, divergence = option.removeprefix("seq_").split("_")
        *lower, upper = (float(bound) for bound in threshold.split("_"))
        rules.append(RejectConfig(divergence=divergence, over=over[0], upper=upper, lower=lower[0] if lower else None))
    mask = np.zeros(keep.shape)
    mask[keep] = keep_mask(rules, log_ratio, sequences)
    close(case, mask, case["expected"]["new_mask"])


@golden("epo_paper_formula")
def check_epo_paper(case: Case) -> None:
    """A turn in a row of its own, and an episode's turns in one row, give the same numbers."""
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    config = EpoConfig(
        coef=params["lambda_"],
        alpha=params["alpha"],
        kappa_l=params["kappa_l"],
        kappa_r=params["kappa_r"],
        gamma=params["gamma_decay"],
        horizon=params["K"],
    )
    past = EntropyHistory()
    for entropy in inputs["entropy_history"]:
        past.add(np.array([entropy]), np.array([0]))
    now = EntropyRange(
        past.range(config.model_copy(update={"horizon": params["K"]})).reference,
        paper_weight(params["k"], params["K"], params["gamma_decay"]),
    )
    close(case, now.reference[0], expected["reference_entropy"])
    close(case, now.weight, expected["beta_k"])
    mask = tensor(inputs["response_mask"])
    N, T, L = mask.shape
    turn = torch.where(mask.bool(), torch.arange(T)[None, :, None], -1)
    for shape, turns in [((N * T, L), torch.full((N * T,), T)), ((N, T * L), None)]:
        entropy = tensor(inputs["entropy"]).requires_grad_()
        reply = turn.view(shape)
        mean = partial(turn_mean, reply=reply, turns=turns, episodes=N)
        term, _ = epo(config, entropy.view(shape), reply, mean, now)
        close(case, inputs["pg_loss"] + term.item(), expected["total_loss"])
        close(case, torch.autograd.grad(term, entropy)[0], expected["grad_entropy"])


@golden("epo_released")
def check_epo_released(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    if "epochs" in inputs:
        close(case, [released_weight(k, params["max_epochs"]) for k in inputs["epochs"]], expected["weight"])
        return
    config = EpoConfig(
        form="released",
        coef=params["entropy_coeff"],
        alpha=params["out_range_penalty"] * params["entropy_smooth_coeff"],
        kappa_l=params["min_ratio"],
        kappa_r=params["max_ratio"],
        horizon=params["max_epochs"],
    )
    past = EntropyHistory()
    for iteration in inputs["entropy_history_per_iteration"]:
        past.add(np.array(iteration), np.arange(len(iteration)))
    reference = past.range(config.model_copy(update={"horizon": params["max_epochs"]})).reference
    close(case, reference, expected["history_mean"])
    now = RegulariserState(
        entropy_range=EntropyRange(reference, released_weight(params["epoch"], params["max_epochs"]))
    )
    close(case, now.entropy_range.weight, expected["epoch_weight"])
    tokens, _ = tokens_of(case)
    entropy = tensor(inputs["entropy"]).requires_grad_()
    judged = entropy
    if params["mask_mode"] == "seq":
        # Their other mode judges a row by its mean, padding included; the bonus is of the tokens' own entropy.
        judged = entropy.mean(dim=1, keepdim=True).expand_as(entropy)
    turn = torch.where(tokens.mask.bool(), torch.tensor(inputs["rollout_step"])[:, None], -1)
    counts = Denominators.of(turn)
    mean = partial(aggregate, sequence_BL=turn, mode="token-mean", denominators=counts)
    _, outside = epo(config, judged, turn, mean, now.entropy_range)
    close(case, config.alpha * outside.detach() * tokens.mask, tensor(expected["penalty"]) * tokens.mask)
    bonus, penalty = mean(entropy), config.alpha * now.entropy_range.weight * mean(outside)
    close(case, bonus.item(), expected["entropy_term"])
    close(case, penalty.item(), expected["penalty_term"])
    if params["mask_mode"] == "token":
        clip = ClipConfig(low=params["clip_ratio"], high=params["clip_ratio"], dual=params["clip_ratio_c"], epo=config)
        loss, metrics = objective(clip, tokens._replace(entropy=entropy, reply=turn), counts, now)
        close(case, metrics["policy_loss"], expected["pg_loss"])
        close(case, loss.item(), expected["total_loss"])
        # Only the entropy bonus has a gradient: the penalty is a constant.
        close(case, torch.autograd.grad(loss, entropy)[0], -config.coef * tokens.mask / counts.tokens)


@golden("value_loss")
def check_value_loss(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    value, rows = tensor(inputs["vpreds"]).requires_grad_(), one_reply(tensor(inputs["response_mask"]))
    loss, clipped = value_loss(
        value, tensor(inputs["values"]), tensor(inputs["returns"]), case["params"]["cliprange_value"]
    )
    total, share = (aggregate(x, rows, "token-mean", Denominators.of(rows)) for x in (loss, clipped))
    close(case, total.item(), expected["loss"])
    close(case, share.item(), expected["clipfrac"])
    close(case, torch.autograd.grad(total, value)[0], expected["grad_vpreds"])


@golden("spa_progress_estimator")
def check_progress_estimator(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    said = torch.tensor(inputs["assistant_token_labels"]) != params["ignore_index"]
    begins = said & ~torch.nn.functional.pad(said[:, :-1], (1, 0))
    rows, columns = reply_ends(torch.where(said, begins.cumsum(dim=1) - 1, -1))
    weight, bias = (tensor(inputs[name]).requires_grad_() for name in ("head_weight", "head_bias"))
    contribution = torch.nn.functional.linear(tensor(inputs["token_features"])[rows, columns], weight, bias)[:, 0]
    for row, turns in enumerate(expected["turn_values"]):
        close(case, contribution[rows == row].detach(), turns)
    outcome = tensor(inputs["final_reward"])
    close(case, torch.zeros_like(outcome).index_add(0, rows, contribution.detach()), expected["predictions"])
    loss = progress_loss(contribution, rows, outcome)
    close(case, loss.item(), expected["loss"])
    gradients = torch.autograd.grad(loss, (weight, bias))
    close(case, gradients[0], expected["grad_head_weight"])
    close(case, gradients[1], expected["grad_head_bias"])


def check_pairs(case: Case) -> None:
    """The loss of iStar's second policy, and its derivative by the log-ratio of each token."""
    inputs, expected, beta = case["inputs"], case["expected"], case["params"]["beta"]
    lengths = np.array(inputs["lengths"])
    episode_K = np.repeat(np.arange(len(lengths)), lengths)
    value_E = beta * np.bincount(episode_K, [sum(ratios) for ratios in inputs["ratios"]]) / lengths
    loss, slope_E = preference(value_E, *pairs(np.array(inputs["outcomes"]), np.array(inputs["groups"])))
    close(case, loss, expected["loss"])
    by_token = [[beta * slope_E[e] / lengths[e]] * n for e, n in zip(episode_K, inputs["tokens"], strict=True)]
    close(case, np.concatenate(by_token), np.concatenate(expected["gradient"]))
