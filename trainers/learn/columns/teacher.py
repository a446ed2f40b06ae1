"""The column "teacher" (T): what the policy with advice in its prompt thinks of each token, against what it thinks
without.

    log pi(token | prompt with advice) - log pi(token | prompt)

Both are of the same weights, those before the step's updates. The advice is the expert's next action, which the
environment is asked for before each reply, or the action that gives the true answer; the words are in
``agents/play/demonstrations/teacher_prompts.py``. NaN in replies to prompts without advice. Asking costs a pass over
each turn's full prompt, without gradient: prompts with advice have no beginning in common with the next turn's.

Source: on-policy self-distillation with a privileged teacher, as in AgentOPSD, arXiv 2608.05987, whose teacher reads
retrieved skills instead.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from manyturn.agents.play.demonstrations.teacher_prompts import Advice
from manyturn.agents.text.command_tree import tree_of
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied, options_of

if TYPE_CHECKING:
    from manyturn.agents.tokens.ledger import Ledger
    from manyturn.trainers.learn.passes.samples import Sample

NAME = "teacher"


class TeacherConfig(ColumnConfig):
    name: Literal["teacher"] = "teacher"
    advice: Advice = "expert"
    """Text that only the teacher reads: the expert's next action at each turn, or the true answer."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if fault := run.agent.refuse_inner("asks a teacher about each reply"):
            return fault
        others = {
            "branching": "repeats turns that nobody advises on",
            "tempering": "draws otherwise",
            "guidance": "adds another text",
            "replay": "adds episodes that nobody advises on",
        }
        for section, what in others.items():
            if getattr(run.rollout, section) is not None:
                return (
                    f"asks a teacher about what the policy draws, and rollout.{section} {what}: leave one of them out"
                )
        if run.roles or (env is not None and len(env.roles) > 1):
            return "asks a teacher of one policy in one role, and here there are several: leave that stage out"
        if env is None or (env.has_expert if self.advice == "expert" else env.has_answer):
            return None
        missing, other = ("expert()", "answer") if self.advice == "expert" else ("answer()", "expert")
        return (
            f"asks a teacher who knows more, and {env.name} has no {missing.removesuffix('()')}: override {missing} in "
            f'the environment, set advice = "{other}" in [[columns]], or leave that stage out'
        )


def advice_of(run: Any) -> Advice | None:
    """Adviser of a run's training episodes; None where no stage asks for a teacher.

    Args:
        run: a ``RunConfig``.
    """
    return cast(TeacherConfig, options_of(NAME, run)).advice if NAME in run.credit.needs else None


@COLUMNS.register(TeacherConfig)
def teacher(step: PlayedStep, config: TeacherConfig) -> Supplied:
    """Of each reply token, and the mean over those that are known."""
    samples, judged = list["Sample"](), list[np.ndarray]()
    for episode in step.episodes:
        assert episode.ledger is not None, "only episodes with a token ledger can be learnt from"
        for turn in range(len(episode.turns)):
            sample = _advised(episode.ledger, turn, len(samples))
            judged.append(
                np.full(episode.ledger.spans[turn].end - episode.ledger.spans[turn].start, sample is not None)
            )
            samples += [] if sample is None else [sample]
    judged_T = np.concatenate(judged).astype(bool)
    ratio_T = np.full(len(judged_T), np.nan)
    if samples:
        reading = step.reading.of(samples)
        taught = reading.at_replies(reading.logprob).astype(np.float64)
        ratio_T[judged_T] = taught - step.reading.at_replies(step.reading.logprob)[judged_T]
    mean = float(np.nanmean(ratio_T)) if judged_T.any() else float("nan")
    return Supplied(token_columns={NAME: ratio_T}, figures={"teacher_gap": mean})


def _advised(ledger: "Ledger", turn: int, number: int) -> "Sample | None":
    """The reply after the advised prompt; None for a reply without tokens, and where nobody advised."""
    from manyturn.trainers.learn.passes.samples import Sample  # torch, which a configuration is checked without

    span, prompt = ledger.spans[turn], ledger.advised.get(turn)
    if prompt is None or span.end == span.start:
        return None
    branch = ledger.branches[span.branch]
    ids = np.array([*prompt.ids(branch.ids[: span.start]), *branch.ids[span.start : span.end]])
    first = len(ids) - (span.end - span.start)
    reply_mask = np.arange(len(ids)) >= first
    reply, limits = np.where(reply_mask, 0, -1), branch.limits(span.start, span.end)
    sample = Sample(number, ids, reply_mask, np.zeros(len(ids)), reply, allowed=dict(enumerate(limits.allowed, first)))
    return replace(sample, commands={first: tree_of(limits.commands)}) if limits.commands else sample
