"""The loss of a micro-batch: a registered policy loss per token, aggregated, plus regularisers.

    loss = agg(policy loss x weight) + c_kl agg(kl) - c_entropy agg(entropy) + epo

The first three terms are aggregated alike. A policy loss is a function ``(Tokens, config) -> TokenLoss`` registered
with ``OBJECTIVES``, whose configuration derives from ``ObjectiveConfig``.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.options.registry import Registry
from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.learn.objective.aggregate import Aggregation, Denominators, aggregate, check_scale
from manyturn.trainers.learn.objective.epo import EntropyRange, EpoConfig, epo, turn_mean
from manyturn.trainers.learn.objective.kl import KlConfig, is_clamped, kl
from manyturn.trainers.learn.objective.rollout_correction import RejectConfig, TisConfig

if TYPE_CHECKING:
    from torch import Tensor


OBJECTIVES: Registry[Any] = Registry("objective", "manyturn.trainers.learn.objective.objectives")


class EntropyConfig(Options):
    """Entropy of the policy's next-token distribution, rewarded: loss - coef agg(H), by the objective's aggregation.

    H is at the sampling temperature, with gradient: over the full vocabulary, and where a reply was limited, over what
    could follow.

    Watch: ``entropy`` should fall slowly; near 0 the members of a group say the same, and nothing is left to compare.
    """

    coef: float = Field(gt=0)
    """Weight."""


class ObjectiveConfig(StageConfig):
    """Base of the configurations of objectives."""

    aggregation: Aggregation = "token-mean"
    """How tokens are weighted against each other; see ``aggregate``."""
    scale: float | None = Field(default=None, gt=0)
    """Constant that seq-mean-token-sum-norm divides by, such as the longest reply allowed."""
    sequence: Literal["reply", "branch"] = "reply"
    """What counts as a sequence: a reply, which is one call of the model, or all replies of a row."""
    kl: KlConfig | None = None
    """Stay close to the reference policy."""
    reference: Annotated[bool, OnlyWith("kl", None, may_wait=True)] = False
    """Keep the reference policy without a KL term, for stages of credit that compare with it. It is the policy at the
    end of the warm-up."""
    entropy: EntropyConfig | None = None
    """Stay random."""
    epo: EpoConfig | None = None
    """Stay random, and keep the entropy near its own history."""
    correction: TisConfig | None = None
    """Weights against the difference between the engine that drew the tokens and the learner."""
    reject: tuple[RejectConfig, ...] = ()
    """Leave out tokens that engine and learner judge too differently; each rule has to be kept."""

    @property
    def averages_over_reply(self) -> bool:
        """True if all tokens of a reply move by one advantage, so that credit of single tokens is lost."""
        return False

    @property
    def keeps_reference(self) -> bool:
        """True if a run keeps the weights of the reference policy."""
        return self.reference or self.kl is not None

    def uses_sequences(self) -> bool:
        """True if the option ``sequence`` changes anything."""
        ungrouped = self.aggregation in ("token-mean", "token-sum")
        tis = self.correction is not None and self.correction.level == "sequence"
        return not ungrouped or tis or any(rule.over != "token" for rule in self.reject)

    def sequences(self, reply: Any) -> Any:
        """The number of each token's sequence inside its row, from that of its reply (a tensor or an array)."""
        return reply if self.sequence == "reply" else reply.clip(max=0)

    def over(self, steps: int) -> Self:
        """The objective of a run of so many steps: EPO's schedule has that length, unless another one is set."""
        if self.epo is None or self.epo.horizon is not None:
            return self
        return self.model_copy(update={"epo": self.epo.model_copy(update={"horizon": steps})})

    @model_validator(mode="after")
    def _effective(self) -> Self:
        check_scale(self.aggregation, self.scale)
        if self.sequence == "branch" and not self.uses_sequences():
            raise ValueError(f"sequence has no effect: {self.name} with {self.aggregation} works on single tokens")
        if self.epo and self.entropy:
            raise ValueError("epo rewards entropy itself, by epo.coef: leave entropy out")
        return self


class Tokens(NamedTuple):
    """A micro-batch of tokens (B, L each). A policy loss finds zeros at positions with mask 0.

    Attributes:
        logp: log-probability under the policy that is trained; carries the gradient.
        old_logp: under the policy before this batch's updates.
        advantage: credit of the token.
        mask: True at the policy's tokens.
        reply: number of the reply that the token belongs to, -1 at mask 0; rows that belong to one episode number
            their replies by its turns. Where the objective's ``sequence`` is "branch", a policy loss sees a row's
            replies as one. Left out: each row is one reply.
        ref_logp: under the reference policy; needed with ``kl`` in the loss, otherwise only measured.
        entropy: of the next-token distribution; needed with ``entropy`` and ``epo``, otherwise only measured.
        weight: correction of the policy loss, such as truncated importance weights; no gradient.
        turns_B: (B,) turns of the row's episode; only EPO asks. None: as many as the row has replies.
    """

    logp: "Tensor"
    old_logp: "Tensor"
    advantage: "Tensor"
    mask: "Tensor"
    reply: "Tensor" = None  # type: ignore[assignment]  # None becomes one reply a row
    ref_logp: "Tensor | None" = None
    entropy: "Tensor | None" = None
    weight: "Tensor | None" = None
    turns_B: "Tensor | None" = None

    @property
    def log_ratio(self) -> "Tensor":
        """Logarithm of new over old probability."""
        return self.logp - self.old_logp


class TokenLoss(NamedTuple):
    """A loss per token (B, L), and figures per token (B, L each) whose mean over tokens is worth recording."""

    loss: "Tensor"
    figures: Mapping[str, "Tensor"]


class RegulariserState(NamedTuple):
    """The state of regularisers after earlier steps; see ``ObjectiveMemory``.

    Attributes:
        kl_coef: the adapted weight of the KL term; None: the configuration's.
        entropy_range: where EPO wants the entropy to be.
    """

    kl_coef: float | None = None
    entropy_range: EntropyRange = EntropyRange()


_NOTHING_LEARNT = RegulariserState()


def objective(
    config: ObjectiveConfig, tokens: Tokens, denominators: Denominators, now: RegulariserState = _NOTHING_LEARNT
) -> tuple["Tensor", dict[str, "Tensor"]]:
    """The share of these rows in the loss of an update, and in its metrics.

    >>> import torch
    >>> from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
    >>> logp, mask = torch.tensor([[-1.0, -2.0]], requires_grad=True), torch.tensor([[1, 0]])
    >>> tokens = Tokens(logp, logp.detach(), torch.ones(1, 2), mask)
    >>> loss, metrics = objective(ClipConfig(), tokens, Denominators(tokens=1, sequences=1))
    >>> loss.item(), torch.autograd.grad(loss, logp)[0].tolist()
    (-1.0, [[-1.0, 0.0]])

    Args:
        config: a registered objective's configuration.
        tokens: positions with mask 0 may hold anything.
        denominators: counts over the full batch of this update.
        now: what changes from step to step.

    Returns:
        The loss, and these metrics as tensors without gradient:
        loss, policy_loss: as in the formula.
        reference_kl: mean over tokens of the KL from the reference, where ref_logp is given; k3 unless config says.
        kl_clamped: share of tokens at which k3 is clamped, where the KL term is by k3.
        entropy: mean over tokens, where given.
        epo_outside: share of tokens whose entropy is out of EPO's range.
        and the means over tokens of the policy loss's own figures.
    """
    tokens = _cleaned(config, tokens)
    sequence = config.sequences(tokens.reply)

    def aggregated(x: "Tensor") -> "Tensor":
        return aggregate(x, sequence, config.aggregation, denominators, config.scale)

    def token_mean(x: "Tensor") -> "Tensor":
        return aggregate(x.detach(), sequence, "token-mean", denominators)

    token_loss: TokenLoss = OBJECTIVES.apply(config, tokens._replace(reply=sequence))
    per_token = token_loss.loss if tokens.weight is None else token_loss.loss * tokens.weight.detach()
    loss = policy_loss = aggregated(per_token)
    metrics = {name: token_mean(figure) for name, figure in token_loss.figures.items()}
    if tokens.ref_logp is not None:
        divergence = kl(tokens.logp, tokens.ref_logp, config.kl.estimator if config.kl else "k3")
        metrics["reference_kl"] = token_mean(divergence)
        if config.kl and config.kl.estimator == "k3":
            metrics["kl_clamped"] = token_mean(is_clamped(tokens.logp, tokens.ref_logp).to(divergence.dtype))
        if config.kl and config.kl.place == "loss":
            coef = config.kl.coef if now.kl_coef is None else now.kl_coef
            loss = loss + coef * aggregated(divergence)
    if tokens.entropy is not None:
        metrics["entropy"] = token_mean(tokens.entropy)
        if config.entropy:
            loss = loss - config.entropy.coef * aggregated(tokens.entropy)
        if config.epo:
            over_turns = partial(turn_mean, reply=tokens.reply, turns=tokens.turns_B, episodes=denominators.episodes)
            mean = over_turns if config.epo.form == "paper" else aggregated
            term, outside = epo(config.epo, tokens.entropy, tokens.reply, mean, now.entropy_range)
            loss, metrics["epo_outside"] = loss + term, token_mean(outside)
    return loss, {"loss": loss.detach(), "policy_loss": policy_loss.detach(), **metrics}


def _cleaned(config: ObjectiveConfig, tokens: Tokens) -> Tokens:
    """The same with zeros where the mask is 0, and with replies.

    Zeroed before any arithmetic: a NaN under the mask would come back through the gradient of what masks it later.
    """
    if config.kl and config.kl.place == "loss" and tokens.ref_logp is None:
        raise ValueError("the objective has a kl term: ref_logp is needed")
    if (config.entropy or config.epo) and tokens.entropy is None:
        raise ValueError("the objective has an entropy term: entropy is needed")
    drop, clean = ~tokens.mask.bool(), {}
    for name, tensor in tokens._asdict().items():
        if tensor is None or name in ("mask", "turns_B"):
            continue
        if tensor.shape != drop.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, mask {tuple(drop.shape)}")
        clean[name] = tensor.masked_fill(drop, -1 if name == "reply" else 0)
    return tokens._replace(**{"mask": ~drop, "reply": drop.long().neg(), **clean})
