"""Losses of tokens: what a split of the batch, a mask, a layout and an option may and may not change."""

import json
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from manyturn.trainers.learn.objective.aggregate import Aggregation, Denominators, aggregate
from manyturn.trainers.learn.objective.epo import EntropyHistory, EntropyRange, EpoConfig
from manyturn.trainers.learn.objective.kl import KlConfig, kl, kl_in_reward
from manyturn.trainers.learn.objective.objective import OBJECTIVES, RegulariserState, Tokens, objective
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.objective.objectives.gspo import GspoConfig
from manyturn.trainers.learn.objective.regularizer_state import ObjectiveMemory
from manyturn.trainers.learn.objective.rollout_correction import (
    RejectConfig,
    Sequences,
    TisConfig,
    effective_share,
    importance_weights,
    keep_mask,
    mismatch,
)

torch.set_num_threads(1)
MODES = get_args(Aggregation)
MEANS = "seq-mean-token-mean"
NORM = "seq-mean-token-sum-norm"
NAMES = OBJECTIVES.names()
NOW = RegulariserState(entropy_range=EntropyRange((0.4, 0.2, 0.3), 1.5))
EPO = {"coef": 0.1, "alpha": 0.7}
quick = settings(max_examples=20, deadline=None)


def config_for(name: str, mode: str = "token-mean", **options) -> Any:
    full = {"kl": {"coef": 0.3, "estimator": "k3+"}, "entropy": {"coef": 0.1}, **options}
    return OBJECTIVES.parse({"name": name, "aggregation": mode, "scale": 7.0 if mode == NORM else None, **full})


CONFIGS = [config_for("clip", mode) for mode in MODES]
CONFIGS += [config_for(name, MEANS) for name in NAMES]
CONFIGS += [config_for("clip", MEANS, ratio="sequence"), config_for("topr", ratio="token")]
CONFIGS += [config_for("gspo", sequence="branch"), config_for("clip", entropy=None, epo=EPO)]
CONFIGS += [config_for("clip", entropy=None, epo={"form": "released", **EPO})]
all_configs = pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.name}-{c.aggregation}")


def sample(seed: int, B: int = 5, L: int = 6) -> Tokens:
    """Random tokens of up to three replies a row, with holes, an empty row, and two rows of one episode."""
    generator = torch.Generator().manual_seed(seed)

    def numbers() -> torch.Tensor:
        return torch.randn(B, L, generator=generator, dtype=torch.float64)

    mask = torch.rand(B, L, generator=generator) < 0.6
    mask[0], mask[1] = True, False
    reply = torch.where(mask, torch.tensor([0, 0, 1, 1, 1, 2]), -1)
    logp = numbers()
    return Tokens(
        logp,
        logp + 0.5 * numbers(),
        numbers(),
        mask,
        reply,
        ref_logp=numbers(),
        entropy=numbers().abs(),
        weight=numbers().abs(),
        turns_B=torch.tensor([3, 1, 3, 6, 6]),
    )


def rows_of(tokens: Tokens, rows: torch.Tensor) -> Tokens:
    return Tokens(*(None if x is None else x[rows] for x in tokens))


def learnt(config: Any, tokens: Tokens, pieces: list[torch.Tensor] | None = None) -> tuple[Any, ...]:
    """Loss, gradients by logp and entropy, and metrics, gathered over pieces of the rows."""
    assert tokens.entropy is not None
    logp, entropy = tokens.logp.clone().requires_grad_(), tokens.entropy.clone().requires_grad_()
    tokens = tokens._replace(logp=logp, entropy=entropy)
    pieces = pieces or [torch.arange(len(logp))]
    numbers = torch.where(tokens.mask, tokens.reply, -1)
    counts = Denominators.of(*(config.sequences(numbers[piece]) for piece in pieces), episodes=4)
    total, metrics = 0.0, {}
    for piece in pieces:
        loss, measured = objective(config, rows_of(tokens, piece), counts, NOW)
        loss.backward()
        total += loss.item()
        metrics = {name: metrics.get(name, 0) + value.item() for name, value in measured.items()}
    return torch.tensor(total, dtype=torch.float64), logp.grad, entropy.grad, metrics


def assert_same(ours: tuple[Any, ...], theirs: tuple[Any, ...], atol: float) -> None:
    for one, other in zip(ours[:3], theirs[:3], strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=atol)
    assert ours[3] == pytest.approx(theirs[3], abs=atol)


@all_configs
@quick
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 4))
def test_micro_batches_in_any_order_add_up_to_the_batch(config, seed, cut):
    tokens = sample(seed)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    whole = learnt(config, tokens)
    assert_same(learnt(config, tokens, [order[:cut], order[cut:]]), whole, atol=1e-10)
    assert whole[3]["loss"] == pytest.approx(whole[0].item())


@all_configs
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -1e30])
def test_masked_positions_never_matter(config, garbage):
    tokens = sample(3)
    spoiled = [x if name in ("mask", "turns_B") else x.masked_fill(~tokens.mask, 7 if name == "reply" else garbage)
               for name, x in tokens._asdict().items()]  # fmt: skip
    dirty = learnt(config, Tokens(*spoiled))
    assert_same(dirty, learnt(config, tokens), atol=0)
    assert (dirty[1][~tokens.mask] == 0).all()


@all_configs
def test_padding_more_changes_nothing(config):
    tokens = sample(4)
    wide = Tokens(*(x if x.dim() == 1 else torch.nn.functional.pad(x, (0, 9), value=5) for x in tokens))
    wide = wide._replace(mask=torch.nn.functional.pad(tokens.mask, (0, 9)))
    narrow, padded = learnt(config, tokens), learnt(config, wide)
    torch.testing.assert_close(padded[0], narrow[0])
    torch.testing.assert_close(padded[1][:, :6], narrow[1])
    assert padded[3] == pytest.approx(narrow[3], abs=1e-10)


@pytest.mark.parametrize("config", [c for c in CONFIGS if c.sequence == "reply"], ids=lambda c: c.name)
def test_replies_in_one_row_or_in_many_give_one_loss(config):
    """Whether an episode is one sequence or a window's many is the context's business, not the loss's."""
    tokens = sample(6)
    replies = [(row, n) for row in range(5) for n in tokens.reply[row].unique().tolist() if n >= 0]
    apart = rows_of(tokens, torch.tensor([row for row, _ in replies]))
    apart = apart._replace(mask=apart.reply == torch.tensor([n for _, n in replies])[:, None])
    together, split = learnt(config, tokens), learnt(config, apart)
    torch.testing.assert_close(split[0], together[0])
    assert split[3] == pytest.approx(together[3], abs=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_on_policy_every_objective_has_the_gradient_of_reinforce(name):
    """Equal old and new policies: ratio 1, nothing clipped, nothing tapered."""
    tokens = sample(5)
    reply = tokens.reply.clamp(max=0)
    advantage = tokens.advantage[:, :1].expand(5, 6)  # GMPO gives one advantage to a sequence
    logp = tokens.logp.clone().requires_grad_()
    plain = Tokens(logp, logp.detach(), advantage, tokens.mask, reply)
    counts = Denominators.of(reply)
    loss, metrics = objective(OBJECTIVES.parse({"name": name, "aggregation": "token-mean"}), plain, counts)
    gradient = torch.autograd.grad(loss, logp)[0]
    torch.testing.assert_close(gradient, -advantage * tokens.mask / tokens.mask.sum())
    assert {value.item() for key, value in metrics.items() if key not in ("loss", "policy_loss")} == {0.0}


@pytest.mark.parametrize("importance", [False, True])
@pytest.mark.parametrize("clip", ["one-side", "two-side", "ring", "none"])
def test_rec_has_the_gradient_of_its_formula(clip, importance):
    tokens = sample(11)
    logp = (tokens.old_logp + torch.linspace(-2, 2, 30, dtype=torch.float64).reshape(5, 6)).requires_grad_()
    options = {"clipping": clip, **({"far_low": 0.5, "far_high": 1.5} if clip == "ring" else {})}
    config = OBJECTIVES.parse({"name": "rec", "importance": importance, "k2": 0.3, "shift": 0.2, **options})
    loss = OBJECTIVES.apply(config, tokens._replace(logp=logp)).loss.sum()
    gradient = torch.autograd.grad(loss, logp)[0]
    for row, column in np.ndindex(5, 6):
        A, d = float(tokens.advantage[row, column]), float((logp.detach() - tokens.old_logp)[row, column])
        r = np.exp(d)
        inside = 0.8 <= r <= 1.2
        counts = {
            "none": True,
            "two-side": inside,
            "one-side": r <= 1.2 if A > 0 else r >= 0.8,
            "ring": inside or (r <= 0.5 if A > 0 else r >= 2.5),
        }[clip]
        expected = -(r if importance else 1) * A * counts + 2 * 0.3 * d - 0.2
        assert float(gradient[row, column]) == pytest.approx(expected, abs=1e-9)


def test_a_ratio_of_a_sequence_does_not_count_long_replies_more():
    """A loss that did would teach good replies to grow and bad ones to shrink, whatever they say."""
    tokens = sample(3)
    logp = tokens.logp.clone().requires_grad_()
    on_policy = Tokens(logp, logp.detach(), torch.ones_like(logp), tokens.mask, tokens.reply)
    loss, _ = objective(ClipConfig(ratio="sequence", aggregation=MEANS), on_policy, Denominators.of(tokens.reply))
    gradient = torch.autograd.grad(loss, logp)[0]
    sequences = Denominators.of(tokens.reply).sequences
    torch.testing.assert_close(gradient, -(tokens.reply >= 0).to(logp.dtype) / sequences)


def test_a_ratio_of_a_sequence_is_the_product_of_its_tokens():
    """Clipped once for the reply: its tokens are pushed together or not at all."""
    zero, new = torch.zeros(1, 3), torch.tensor([[0.1, 0.15, 0.1]], requires_grad=True)
    tokens = Tokens(new, zero, torch.ones(1, 3), torch.ones(1, 3), torch.tensor([[0, 0, 1]]))
    loss, metrics = objective(ClipConfig(ratio="sequence", aggregation=MEANS, dual="off"), tokens, Denominators(3, 2))
    gradient = torch.autograd.grad(loss, new)[0]
    assert gradient[0, :2].tolist() == [0, 0] and gradient[0, 2] < 0
    assert metrics["clip_fraction"].item() == pytest.approx(2 / 3)


def test_dual_clip_bounds_a_bad_token_and_can_be_off():
    one, old = torch.ones(1, 1), torch.zeros(1, 1)
    tokens, counts = Tokens(5 * one, old, -one, one), Denominators(1, 1)
    capped, free = (objective(ClipConfig(dual=dual), tokens, counts)[0] for dual in (3.0, "off"))
    assert capped.item() == 3.0
    assert free.item() == pytest.approx(torch.e**5)


@pytest.mark.parametrize("name", NAMES)
def test_a_ratio_far_off_stays_finite(name):
    logp = torch.tensor([[500.0, -500.0, 400.0]], requires_grad=True)
    reply = torch.tensor([[0, 1, 1]])
    tokens = Tokens(logp, torch.zeros(1, 3), torch.tensor([[-1.0, -1.0, 1.0]]), torch.ones(1, 3), reply)
    loss, _ = objective(OBJECTIVES.parse(name), tokens, Denominators(3, 2))
    assert loss.isfinite() and torch.autograd.grad(loss, logp)[0].isfinite().all()


def test_regularisers_are_measured_without_being_asked_for_and_missing_ones_are_named():
    tokens, counts = sample(6), Denominators.of(sample(6).reply)
    bare = tokens._replace(ref_logp=None, entropy=None, weight=None)
    plain, told = objective(ClipConfig(), bare, counts)
    assert "reference_kl" not in told and "entropy" not in told
    loss, metrics = objective(ClipConfig(), tokens._replace(weight=None), counts)
    assert loss == plain
    assert metrics["entropy"].item() == pytest.approx(tokens.entropy[tokens.mask].mean().item())
    expected = kl(tokens.logp, tokens.ref_logp, "k3")[tokens.mask].mean().item()
    assert metrics["reference_kl"].item() == pytest.approx(expected)
    with pytest.raises(ValueError, match="ref_logp is needed"):
        objective(config_for("clip"), bare, counts)
    with pytest.raises(ValueError, match="entropy is needed"):
        objective(config_for("clip"), bare._replace(ref_logp=tokens.ref_logp), counts)
    with pytest.raises(ValueError, match=r"old_logp has shape \(5, 1\), mask \(5, 6\)"):
        objective(ClipConfig(), bare._replace(old_logp=tokens.old_logp[:, :1]), counts)


def test_kl_in_the_reward_leaves_the_loss_alone():
    tokens, counts = sample(7), Denominators.of(sample(7).reply)
    loss, metrics = objective(ClipConfig(kl=KlConfig(coef=5.0, estimator="k1", place="reward")), tokens, counts)
    assert loss == objective(ClipConfig(), tokens, counts)[0]
    assert "reference_kl" in metrics


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"aggregation": NORM}, "give a constant"),
        ({"scale": 5.0}, "scale has no effect with token-mean"),
        ({"dual": 1.0}, "greater than 1"),
        ({"low": 0.0}, "greater than 0"),
        ({"kl": {"coef": 0.1, "estimator": "k1"}}, "gradient of mean zero"),
        ({"kl": {"coef": 0.0}}, "greater than 0"),
        ({"kl": {"coef": 0.1, "horizon": 50}}, "horizon has no effect while target is unset"),
        ({"entropy": {"coeff": 0.1}}, "did you mean 'coef'"),
        ({"aggregation": "token_mean"}, "token-mean"),
        ({"ratio": "sequence"}, "good replies grow"),
        ({"ratio": "sequence", "aggregation": "seq-mean-token-sum"}, "set aggregation"),
        ({"sequence": "branch"}, "sequence has no effect"),
        ({"epo": {}, "entropy": {"coef": 0.1}}, "leave entropy out"),
        ({"epo": {"kappa_l": 1.3}}, "must be less than kappa_r"),
        ({"epo": {"form": "released", "gamma": 2.0}}, "gamma has no effect with form = 'released'"),
        ({"correction": {"floor": 1.5}}, "less than 1"),
        ({"reject": [{"upper": 0.1, "lower": 0.5}]}, "lower has no effect with divergence = 'k3'"),
        ({"reject": [{"divergence": "k1", "over": "max", "upper": 2}]}, "use k2 or k3"),
        ({"reject": [{"divergence": "k1", "upper": 0.5}]}, "greater than 1"),
    ],
)
def test_a_wrong_option_is_refused_with_the_reason(options, told):
    with pytest.raises(ValidationError, match=told):
        ClipConfig.model_validate(options)


def test_what_makes_sequences_matter_makes_the_option_legal():
    grouping: list[dict[str, Any]] = [
        {"aggregation": "seq-mean-token-mean"},
        {"correction": {"level": "sequence"}},
        {"reject": [{"over": "mean", "upper": 0.1}]},
    ]
    for options in grouping:
        assert ClipConfig.model_validate({"sequence": "branch", **options}).sequence == "branch"
    assert GspoConfig(sequence="branch", aggregation="token-mean").uses_sequences()


def test_a_batch_without_policy_tokens_is_refused_and_a_micro_batch_without_them_adds_nothing():
    with pytest.raises(ValueError, match="without tokens of the policy"):
        Denominators.of(torch.full((2, 3), -1))
    for mode in MODES:
        nothing = torch.full((2, 3), -1)
        share = aggregate(torch.ones(2, 3), nothing, mode, Denominators(4, 2), 7.0 if mode == NORM else None)
        assert share == 0


@pytest.mark.parametrize("estimator", ["k2", "k3", "abs", "k1+", "k3+"])
def test_kl_is_zero_and_at_rest_where_the_policies_agree(estimator):
    logp = torch.tensor([-1.0, -0.1], requires_grad=True)
    value = kl(logp, logp.detach(), estimator)
    assert (value == 0).all()
    assert (torch.autograd.grad(value.sum(), logp)[0] == 0).all()


def test_kl_in_reward_touches_policy_tokens_alone_and_carries_no_gradient():
    logp = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], requires_grad=True)
    mask = torch.tensor([[1, 0], [0, 0]])
    reward, mean = kl_in_reward(torch.ones(2, 2), kl(logp, torch.zeros(2, 2), "k1"), mask, coef=0.5)
    assert reward.tolist() == [[1.5, 1.0], [1.0, 1.0]]
    assert mean == -1.0 and not reward.requires_grad


def epo_gradient(form: str, entropy: float, now: EntropyRange) -> float:
    """Gradient of the loss by the entropy of the only token."""
    one = torch.ones(1, 1)
    value = torch.full((1, 1), entropy, requires_grad=True)
    config = ClipConfig(epo=EpoConfig(form=form, coef=1.0, alpha=0.5))
    tokens = Tokens(-one, -one, 0 * one, one, entropy=value)
    loss, _ = objective(config, tokens, Denominators(1, 1), RegulariserState(entropy_range=now))
    return torch.autograd.grad(loss, value)[0].item()


def test_epo_pulls_entropy_back_into_its_range_and_the_released_form_does_not():
    inside = EntropyRange((1.0,), weight=4.0)
    assert epo_gradient("paper", 1.0, inside) == -1.0  # rewarded as ever
    assert epo_gradient("paper", 2.0, inside) == -1.0 + 4.0 * 0.5  # too high: punished
    assert epo_gradient("paper", 0.5, inside) == -1.0 - 4.0 * 0.5  # too low: rewarded more
    assert [epo_gradient("released", entropy, inside) for entropy in (0.5, 1.0, 2.0)] == [-1.0] * 3
    assert epo_gradient("paper", 2.0, EntropyRange()) == -1.0  # the first step has no history


@given(st.lists(st.lists(st.floats(0, 5), min_size=1, max_size=6), min_size=1, max_size=5))
@quick
def test_epo_remembers_the_mean_of_past_steps(steps):
    config = ClipConfig(epo=EpoConfig(horizon=8))
    memory, past = ObjectiveMemory(config), []
    for entropies in steps:
        # A checkpoint between any two steps changes nothing.
        resumed = ObjectiveMemory(config)
        resumed.load_plain(json.loads(json.dumps(memory.plain())))
        memory = resumed
        now = memory.begin(np.array(entropies), np.zeros(len(entropies), int))
        assert now.entropy_range.reference == (pytest.approx((np.mean(past),)) if past else ())
        past.append(np.mean(entropies))


def test_the_released_history_is_one_of_turns_and_counts_the_present_step():
    memory = ObjectiveMemory(ClipConfig(epo=EpoConfig(form="released")).over(8))
    first = memory.begin(np.array([1.0, 3.0, 4.0]), np.array([0, 0, 1]))
    assert first.entropy_range == EntropyRange((2.0, 4.0), 1.0)
    second = memory.begin(np.array([1.0]), np.array([0]))
    assert second.entropy_range.reference == (1.5, 2.0)
    assert EntropyHistory(**memory.plain()["epo"]).steps == 2


def test_an_adapting_kl_weight_survives_a_checkpoint_and_a_fixed_one_is_not_in_it():
    config = ClipConfig(kl=KlConfig(coef=0.2, target=0.1, horizon=100))
    memory = ObjectiveMemory(config)
    memory.end(reference_kl=0.5, sequences=10)
    again = ObjectiveMemory(config)
    again.load_plain(json.loads(json.dumps(memory.plain())))
    assert again.begin(None, np.zeros(0, int)).kl_coef == pytest.approx(0.2 * 1.02)
    fixed = ObjectiveMemory(ClipConfig(kl=KlConfig(coef=0.2)))
    fixed.end(reference_kl=0.5, sequences=10)
    assert fixed.plain() == {} and fixed.begin(None, np.zeros(0, int)).kl_coef == 0.2


log_ratios = st.lists(st.floats(-3, 3), min_size=1, max_size=12)


@given(log_ratios, st.integers(1, 4), st.sampled_from(["token", "sequence"]), st.booleans())
@quick
def test_weights_stay_within_their_bounds(values, sequences, level, normalise):
    log_ratio, ids = np.array(values), Sequences.of(np.arange(len(values)) % sequences)
    weight = importance_weights(TisConfig(level=level, normalise=normalise), log_ratio, ids)
    assert (weight >= 0).all() and np.isfinite(weight).all()
    assert normalise or weight.max() <= 2.0
    two_sided = importance_weights(TisConfig(level=level, floor=0.5), log_ratio, ids)
    assert ((two_sided == 0) | ((two_sided >= 0.5) & (two_sided <= 2.0))).all()
    assert 0 <= effective_share(two_sided) <= 1 + 1e-12
    same = importance_weights(TisConfig(level=level, normalise=normalise), 0 * log_ratio, ids)
    assert (same == 1).all() and effective_share(same) == 1


@given(log_ratios, st.sampled_from(["k1", "k2", "k3"]), st.sampled_from(["token", "sum", "mean", "max"]))
@quick
def test_rules_keep_whole_sequences_and_everything_where_engine_and_learner_agree(values, divergence, over):
    if (divergence, over) == ("k1", "max"):
        return
    rule = RejectConfig(divergence=divergence, over=over, upper=1.3)
    log_ratio, ids = np.array(values), np.arange(len(values)) // 3
    keep = keep_mask([rule], log_ratio, Sequences.of(ids))
    assert keep_mask([rule], 0 * log_ratio, Sequences.of(ids)).all()
    assert (keep_mask([rule, RejectConfig(upper=0.01)], log_ratio, Sequences.of(ids)) <= keep).all()
    if over != "token":
        assert all(len(set(keep[ids == number])) == 1 for number in set(ids))


def test_the_difference_between_engine_and_learner_is_measured_either_way():
    figures = mismatch(np.log([0.25, 1.0, 2.0]))
    assert figures["engine_ratio_max"] == pytest.approx(4.0)
    assert figures["engine_kl"] == pytest.approx(np.mean([0.25 - 1 + np.log(4), 0, 2 - 1 - np.log(2)]))
    assert figures["effective_samples"] == pytest.approx(3.25**2 / (3 * (0.25**2 + 1 + 4)))
    none = {"engine_kl": 0.0, "engine_ratio_p99": 1.0, "engine_ratio_max": 1.0, "effective_samples": 1.0}
    assert mismatch(np.zeros(3)) == none
