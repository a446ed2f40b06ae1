"""Judging of episodes between play and credit: each verdict becomes a named part of the reward.

    turn k is paid v_k           verdicts = "turn"
    the last turn is paid v      verdicts = "episode"

Implementation:
1. Environments are not kept waiting: what is judged has ended, and its seat is free.
2. Answers of an endpoint are in the run's one journal of answers, by a hash of the request. A run that was killed
   judges a step again and asks for nothing that it has an answer to. Rules give the same verdict each time.
3. NaN is no verdict: such an episode leaves its group, and is never taken for one that earned 0.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.agents.experience.budget import BudgetConfig, Purse
from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.play.guidance.expert_replay import expert_words
from manyturn.trainers.play.guidance.guidance import Workshop
from manyturn.trainers.play.judges.agreement import (
    agreement,
    check_agreement,
    judged_outcomes,
    lengths_of,
    verdicts_of,
    without_length,
)
from manyturn.trainers.play.judges.endpoint_judge import EndpointJudge
from manyturn.trainers.play.judges.judge_config import JudgeConfig
from manyturn.trainers.play.judges.rubric import Scores, rubric_score, vote
from manyturn.trainers.play.judges.rule import RULES, Case


class Judging:
    """A run's judge at work.

    Args:
        config: its options.
        workshop: the environment's seats, in which the expert is asked.

    Raises:
        ConfigError: the endpoint cannot be asked.
    """

    def __init__(self, config: JudgeConfig, workshop: Workshop):
        self.config, self._workshop = config, workshop
        self._purse = Purse(config.budget or BudgetConfig())
        self._endpoint = None if config.is_scripted else EndpointJudge(config, self._purse)
        self._noted = NOTHING

    @property
    def endpoint(self) -> OpenAIPolicy | None:
        """The endpoint that is asked, if one is."""
        return None if self._endpoint is None else self._endpoint.policy

    @property
    def spent(self) -> Spent:
        """Tokens and USD so far."""
        return self._purse.spent

    def recall(self, spent: Sequence[Any]) -> None:
        """Count what was spent before a checkpoint."""
        self._purse.spent = self._noted = Spent(*spent)

    async def judged(self, episodes: Sequence[Episode], *, first: bool) -> list[Episode]:
        """The episodes with a part of the reward for each verdict.

        Args:
            episodes: that have ended; those that ended in an error stay as they are.
            first: of the first step, before which the judge is not trusted.

        Raises:
            JudgeDisagrees: it does not agree with the outcomes of the first step.
            TooManyErrors: an endpoint does not answer.
        """
        sound = [episode for episode in episodes if not episode.ending.is_error and episode.turns]
        words = await expert_words(self._workshop, sound) if self.config.needs_expert else {}
        work = [self._scores(episode, words.get(episode.key, ())) for episode in sound]
        scores = list[Scores]()
        for result in await asyncio.gather(*work, return_exceptions=True):  # answers under way are paid for: keep them
            if isinstance(result, BaseException):
                raise result
            scores.append(result)
        if self.config.length == "regressed" and sound:
            scores = without_length(scores, [np.array(lengths_of(episode, self.config)) for episode in sound])
        paid = {e.key: _paid(e, self.config, score) for e, score in zip(sound, scores, strict=True)}
        judged = [paid.get(episode.key, episode) for episode in episodes]
        if first:
            check_agreement(judged, self.config)
        return judged

    def figures(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Metrics of judged episodes, and of what was spent since the last call."""
        judged = [episode for episode in episodes if verdicts_of(episode, self.config)]
        verdicts = np.array([verdict for episode in judged for verdict in verdicts_of(episode, self.config)])
        lengths = np.array([length for episode in judged for length in lengths_of(episode, self.config)])
        there = ~np.isnan(verdicts)
        figures = {
            "judge_agreement": agreement(*judged_outcomes(judged, self.config)),
            "judge_abstained": float(1 - there.mean()) if len(verdicts) else 0.0,
            "judge_length": _correlation(verdicts[there], lengths[there]),
        }
        since, self._noted = self.spent.minus(self._noted), self.spent
        if self._endpoint is not None:
            figures["judge_tokens"] = float((since.prompt_tokens or 0) + (since.reply_tokens or 0))
        if since.cost is not None:
            figures["judge_cost"] = since.cost
        return figures

    async def _scores(self, episode: Episode, words: Sequence[str]) -> Scores:
        """The verdict at each place of an episode: of its turns, or of all of it."""
        votes = [await self._vote(episode, words, number) for number in range(self.config.votes)]
        values = {name: vote(np.stack([one[name] for one in votes]), self.config.vote) for name in votes[0]}
        return rubric_score(values, self.config.criteria)

    async def _vote(self, episode: Episode, words: Sequence[str], number: int) -> Mapping[str, Scores]:
        config, case = self.config, Case(episode, words)
        values = dict[str, Scores]()
        for name, rule in config.ruled.items():
            score_K = np.array(RULES.apply(rule, case), np.float64)
            score_K = turned_round(score_K, config.noise, episode.key, f"{name}/{number}")
            values[name] = score_K if config.verdicts == "turn" else np.array([score_K.mean()])
        if self._endpoint is not None:
            rules = self._workshop.seats.of(episode.task).facts.instructions
            values |= await self._endpoint.verdict(episode, rules, number)
        return values


def turned_round(score_K: Scores, share: float, key: EpisodeKey, name: str) -> Scores:
    """Scores of which a share, by the episode's key, is 1 minus what it was."""
    if not share:
        return score_K
    return np.where(generator("judge noise", *key, name).random(len(score_K)) < share, 1 - score_K, score_K)


def _paid(episode: Episode, config: JudgeConfig, scores: Scores) -> Episode:
    """The episode with its verdicts as a part of the reward."""
    turns, values = list(episode.turns), scores.tolist()
    for place, value in enumerate(values, len(turns) - len(values)):
        turn = turns[place]
        parts = {**turn.parts, config.part: value}
        turns[place] = dataclasses.replace(turn, parts=parts, reward=turn.reward + value)
    return dataclasses.replace(episode, turns=turns)


def _correlation(verdicts: Scores, lengths: Scores) -> float:
    """Correlation of verdicts with lengths; NaN where either is constant."""
    if len(verdicts) < 2 or np.ptp(verdicts) == 0 or np.ptp(lengths) == 0:
        return float("nan")
    return float(np.corrcoef(verdicts, np.log1p(lengths))[0, 1])
