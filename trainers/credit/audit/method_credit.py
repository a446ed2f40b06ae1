"""Credit that a method gives to the turns of a sample, as far as a learner would learn from it."""

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.audit.turn_sample import OWN, AuditSample
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.pipeline import Credit, credit

LACKS = {
    **dict.fromkeys(
        ("longest_reply", "longest_episode"), "a limit of a run's: give it lengths, as overlong:max_tokens=64,buffer=16"
    ),
    "belief": "for which the environment has to name a true answer: override answer()",
    "progress": "which the environment does not report: override progress()",
    "confidence": "which only replies of a language model state: measure it by training",
    "tempered": "which only a run has, for members drawn at another temperature: measure it by training",
    "guided": "which only a run has, for members that read a text: measure it by training",
    "likelihood": "which only a run has, for members that read a text: measure it by training",
    "drawer": "which branches of a turn have, and rollouts of another trainer have no branches",
    "action": "which the rollouts lack: give each turn a number in Rollout.columns, the same one for the same action",
    "drift": "which the rollouts lack: give in Rollout.columns how far the policy moved since the task was last played",
    "reference": "which the rollouts lack: give in Rollout.columns log pi - log pi_ref of each reply",
    "tool_calls": "which only replies of a language model have: take another stratum, as stratified:stratum=turns",
}
"""Column -> why an audit may lack it, and what to do."""
BRANCHES = "drawer"  # the column of methods that compare the branches of a situation


class BranchedCredit(CreditConfig):
    """The functions that give credit to turns, which see branches of every turn as well: more visits to situations."""

    @property
    def needs(self) -> dict[str, str]:
        return {**super().needs, BRANCHES: self.advantage.name}


def credit_of(sample: AuditSample, config: CreditConfig, anchor: str = OWN) -> FloatK:
    """The credit (K) that a method gives by an anchor.

    Raises:
        ValueError: the method needs what the sample lacks; the text says what.
    """
    batch = sample.batch_by(anchor)
    if BRANCHES in config.needs and sample.branched is not None:
        batch = sample.branched
        if config.rewards:
            raise ValueError(
                f"{config.rewards[0].name} changes parts of the reward, and of a branch only the sum of all is there: "
                "leave it out, or take a method without branches"
            )
    _refuse_missing(batch, config)
    return learnt_K(credit(batch, config))[: len(sample.task_K)]


def learnt_K(earned: Credit) -> FloatK:
    """Credit that a learner takes from each turn (K): its reply's mean advantage, or 0 where the episode is left out.

    >>> kept = [[True], [True]]
    >>> batch = TurnBatch.from_episodes([[1], [0]], groups=[0, 0], format_valid=kept)
    >>> learnt_K(credit(batch, CreditConfig(advantage={"name": "psr_nsr", "learns": "negative"})))
    array([ 0., -1.])
    """
    batch, credit_K = earned.batch, earned.advantage_K
    if earned.token_T is not None:
        sum_K = np.bincount(batch.turn_of_T, earned.token_T, len(credit_K))
        credit_K = np.where(batch.tokens_K > 0, sum_K / np.maximum(batch.tokens_K, 1), credit_K)
    return np.where(earned.kept_E[batch.episode_K], credit_K, 0.0)


def _refuse_missing(batch: TurnBatch, config: CreditConfig) -> None:
    columns = batch.columns.keys() | batch.token_columns.keys()
    for column, stage in config.needs.items():
        if column not in columns:
            fix = LACKS.get(column, "which the rollouts lack: give it in Rollout.columns, or in token_columns")
            raise ValueError(f"{stage} needs the column {column!r}, {fix}")
    parts = {OUTCOME, *batch.parts}
    if config.advantage.reads_verdicts and config.advantage.part not in parts:
        raise ValueError(f"{config.advantage.name} reads verdicts, and nothing paid the part {config.advantage.part!r}")
    for stage in config.rewards:
        if unpaid := sorted(stage.named_parts() - parts):
            raise ValueError(
                f"{stage.name} changes the part {unpaid[0]!r}, which nothing paid here: name one of "
                f"{', '.join(sorted(parts))}, as in {stage.name}:part=NAME"
            )
        parts |= stage.adds
