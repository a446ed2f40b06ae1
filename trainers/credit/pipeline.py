"""Credit for turns: the rewards, advantage and modulation stages in a row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.credit.batch.decisions import Decisions
from manyturn.trainers.credit.batch.turn_batch import BoolE, BoolK, FloatK, FloatT, TurnBatch
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS, Advantage, Rewarded, StageConfig

ROUNDING = 1e-9  # share of a score below which a difference is none


@dataclass(frozen=True, eq=False)
class Credit:
    """The advantage of every turn, and how it came about.

    Attributes:
        advantage_K: exactly 0 at every turn of an unscorable episode.
        levels: name -> what the advantage is made of before modulation (K), such as GiGPO's "episode" and "turn".
        diagnostics: name -> figure:
            groups_without_signal: share of groups whose scorable episodes all have one return.
            penalised_turns: share of turns that a penalty is taken from.
            penalty_alone: share of groups without signal whose turns a penalty tells apart, among all groups.
            unscorable_episodes: share of episodes that left their group.
            left_out_episodes: share of episodes that are not learnt from, where the options leave out any.
            and what reward and advantage functions add, such as G-RA's open_gates and GiGPO's singleton_anchors.
        batch: the batch as the rewards stage left it.
        token_T: credit of each reply token, where the advantage separates tokens of a turn, or a modulation weighs
            them; None: each has its turn's.
        targets_T: what a value head is to predict at each reply token; NaN where nothing, as at every token of an
            unscorable episode. None: the advantage uses no values.
        kept_E: whether the options leave an episode in the update; one that is left out has an advantage all the same.
            An unscorable episode is true here, and ``learnt_mask`` takes both kinds out.
        memory: what the stages remember from update to update, as plain values.
    """

    advantage_K: FloatK
    levels: Mapping[str, FloatK]
    diagnostics: Mapping[str, float]
    batch: TurnBatch
    token_T: FloatT | None
    targets_T: FloatT | None
    kept_E: BoolE
    memory: Memory

    @property
    def advantage_T(self) -> FloatT:
        """The advantage of every reply token (T), turn after turn in the order of the batch."""
        return np.repeat(self.advantage_K, self.batch.tokens_K) if self.token_T is None else self.token_T


def credit(batch: TurnBatch, config: CreditConfig, memory: Memory | None = None) -> Credit:
    """Run the stages on a batch; of one with inner turns on its ``decisions``, whose credit their turns get.

    Args:
        memory: what the stages remembered last time; None at the beginning.

    >>> kept = [[True, True], [False, True]]
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=["a task", "a task"], format_valid=kept)
    >>> result = credit(batch, CreditConfig(rewards=("invalid_penalty",), advantage={"name": "grpo", "std": False}))
    >>> result.advantage_K.round(3)
    array([ 0.5,  0.5, -0.6, -0.5])
    """
    if not batch.inner_K.any():
        return _credit(batch, config, memory or {})
    decisions = Decisions.of(batch)
    earned, decision_K = _credit(decisions.batch, config, memory or {}), decisions.decision_K
    levels = {name: level_D[decision_K] for name, level_D in earned.levels.items()}
    restored = decisions.restored(batch, earned.batch)
    return replace(earned, advantage_K=earned.advantage_K[decision_K], levels=levels, batch=restored)


def _credit(batch: TurnBatch, config: CreditConfig, memory: Memory) -> Credit:
    figures = dict[str, float]()
    for reward in config.rewards:
        rewarded, memory = REWARDS.apply_remembering(reward, memory, batch)
        batch, measured = rewarded if isinstance(rewarded, Rewarded) else Rewarded(rewarded)
        figures |= measured
    result, memory = ADVANTAGES.apply_remembering(config.advantage, memory, batch)
    if not isinstance(result, Advantage):
        result = Advantage(result)
    advantage_K, token_T = _settled(result.total_K, batch.scorable_K, config.advantage), result.token_T
    targets_T, scorable_T = result.targets_T, batch.scorable_K[batch.turn_of_T]
    if token_T is not None:
        token_T = _settled(token_T, scorable_T, config.advantage)
    if targets_T is not None:
        targets_T = np.where(scorable_T, _shaped(targets_T, scorable_T, config.advantage), np.nan)
    for modulation in config.modulation:
        if modulation.by_token:
            given_T = np.repeat(advantage_K, batch.tokens_K) if token_T is None else token_T
            token_T, memory = MODULATIONS.apply_remembering(modulation, memory, batch, given_T)
            token_T = _settled(token_T, scorable_T, modulation)
            continue
        if token_T is not None:
            raise ValueError(f"{modulation.name} weighs turns, but {config.advantage.name} gives credit to tokens")
        advantage_K, memory = MODULATIONS.apply_remembering(modulation, memory, batch, advantage_K)
        advantage_K = _settled(advantage_K, batch.scorable_K, modulation)
    kept_E, left_out = _kept_episodes(batch, result, config)
    diagnostics = {**figures, **_diagnostics(batch), **left_out, **result.diagnostics}
    return Credit(advantage_K, result.levels, diagnostics, batch, token_T, targets_T, kept_E, memory)


def _kept_episodes(batch: TurnBatch, result: Advantage, config: CreditConfig) -> tuple[BoolE, dict[str, float]]:
    """The episodes that are learnt from, and the share left out where the options leave out any."""
    kept_E = np.ones(len(batch.truncated_E), bool) if result.kept_E is None else result.kept_E
    if kept_E.shape != batch.truncated_E.shape:
        raise ValueError(f"{config.advantage.name} returned kept_E of shape {kept_E.shape}, not one for each episode")
    if config.truncated == "left_out":
        kept_E = kept_E & ~batch.truncated_E
    elif result.kept_E is None:
        return kept_E, {}
    return kept_E, {"left_out_episodes": 1 - float(kept_E.mean())}


def _settled(advantage: FloatK, scorable: BoolK, source: StageConfig) -> FloatK:
    """The advantage, of turns or tokens, with 0 where unscorable, after a check that the function kept its contract."""
    settled = np.where(scorable, _shaped(advantage, scorable, source), 0.0)
    if not np.isfinite(settled).all():
        place = int((~np.isfinite(settled)).argmax())
        raise ValueError(f"{source.name} returned {settled[place]} at place {place} of the batch, which is scorable")
    return settled


def _shaped(values: FloatK, like: BoolK, source: StageConfig) -> FloatK:
    if np.shape(values) != like.shape:
        raise ValueError(f"{source.name} returned shape {np.shape(values)}, not {like.shape}")
    return values


def _diagnostics(batch: TurnBatch) -> dict[str, float]:
    groups = len(np.unique(batch.group_K))
    earned = _with_spread(batch, batch.episode_return_E()[batch.episode_K])
    return {
        "groups_without_signal": 1.0 - len(earned) / groups,
        "penalised_turns": float((batch.penalty_K > 0).mean()),
        "penalty_alone": len(_with_spread(batch, batch.score_K()) - earned) / groups,
        "unscorable_episodes": float(np.isnan(batch.episode_return_E()).mean()),
    }


def _with_spread(batch: TurnBatch, value_K: FloatK) -> set[int]:
    """The groups whose scorable turns have different values."""
    statistics = group_statistics(value_K, batch.group_K, batch.scorable_K)
    # A stage that pays the outcome out turn by turn leaves rounding errors between returns that were equal.
    spread_K = statistics.std_K > ROUNDING * np.maximum(1.0, np.abs(statistics.mean_K))
    return set(batch.group_K[spread_K].tolist())
