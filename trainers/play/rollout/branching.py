"""Branching rollouts: part of a group's episodes fork off others, at turns where the policy is unsure (ARPO).

    H_k = (sum of the entropies of the first ``tokens`` tokens of reply k) / ln |V|
    score_k = clip(u - weight (H_k - H_0), 0, 1), u ~ U(0, 1)
    an episode branches at turn k >= 1 if score_k <= threshold

Source: ARPO (Agentic Reinforced Policy Optimization), arXiv 2507.19849; defaults as in the authors' code
(dongguanting/ARPO).

Implementation:
1. Of a group's ``rollout.group`` episodes ``initial`` are played first. A branch is a further member: it repeats its
   parent's replies of turns 0..k-1, with the log-probabilities and entropies that they were drawn with, and draws reply
   k again. Whether the environment answers alike is checked.
2. Play goes in rounds, so that the order in which episodes end decides nothing. After a round its episodes are gone
   through turn by turn, and at each turn member by member, until the group has all its episodes (``order`` has others);
   an episode branches ``siblings`` times at a turn, and a branch only after its fork. Where a round brings no branch,
   the rest of the group starts again.
3. An episode that ended in an error counts as played, and nothing branches off it.
4. Credit knows nothing of branches, except ``forks``, which compares siblings. What they share is learnt from once for
   each of them, with the mean of their advantages in effect, which the paper calls soft attribution; the advantage is
   GRPO's.

Differences: in the paper an entropy decides of the turn that it is of, as here; in the code of a fork after that turn.
The code takes the 10 likeliest tokens for all, here entropies are exact. It plays turns in lock-step, so that branches
compete with their parents for the rest of the budget, and start again one episode at a time. It keeps H_0 by place in
the batch, for branches from their own first reply, and never resets it; here H_0 is of the same episode. ``order`` and
``siblings`` are not theirs. Left out: hard attribution, which the code does not have.

Watch: ``branched`` below the share that may: episodes are too short to fork, or end in errors; ``drawn_tokens``: what
branches repeat is not in it; ``groups_without_signal`` above that of full rollouts: what branches share decides.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, repeat, zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.fork import Fork
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import FloatK

Starts = dict[EpisodeKey, Fork | None]


class Branching(Options):
    """Number and places of the branches of a group."""

    initial: int = Field(ge=1)
    """Episodes of a group that are played before anything branches; fewer than rollout.group."""
    weight: float = Field(default=0.2, ge=0)
    """How much a rise of entropy since the first turn makes a branch likelier."""
    threshold: float = Field(default=0.5, gt=0, le=1)
    """Score up to which an episode branches: the share of turns that do where the entropy stays as it was."""
    tokens: int = Field(default=20, ge=1)
    """Tokens at the beginning of a reply that its entropy is of."""
    order: Literal["turns", "random", "entropy"] = "turns"
    """Which forks come first where more turns would branch than episodes are left: early turns, any, or those whose
    replies had the most entropy."""
    siblings: int = Field(default=1, ge=1)
    """Branches at one fork, each with a draw of its own."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        rollout = run.rollout
        if run.roles:
            return "rollout.branching repeats what one policy said, and [roles] names several: leave one of them out"
        if fault := run.agent.refuse_inner("rollout.branching forks an episode between two turns"):
            return fault
        if self.initial >= rollout.group:
            return (
                f"rollout.branching.initial = {self.initial} leaves nothing of rollout.group = {rollout.group} to "
                "branch: lower it, raise rollout.group, or leave branching out"
            )
        if rollout.max_turns == 1:
            return (
                "rollout.branching has no effect where rollout.max_turns = 1, for episodes fork after their first "
                "turn: raise max_turns, or leave branching out"
            )
        return None


def start_entropy(entropies_T: ArrayLike, vocabulary: int, tokens: int) -> float:
    """The sum of a reply's first entropies, where ln(vocabulary), the most that one token can have, is 1.

    Args:
        entropies_T: of the distributions that its T tokens were drawn from, in nats.

    Raises:
        EngineError: they are unknown.

    >>> round(start_entropy([math.log(8), math.log(2), 7.0], vocabulary=8, tokens=2), 6)
    1.333333
    """
    entropy = float(np.sum(np.asarray(entropies_T, np.float64)[:tokens])) / math.log(vocabulary)
    if math.isnan(entropy):
        raise EngineError(
            "the engine does not return the entropies by which rollout.branching decides: leave it out, or take an "
            "engine that returns them"
        )
    return entropy


def branch_score(u: float, now: float, first: float, weight: float) -> float:
    """The score that is compared with the threshold: low where the entropy has risen since the first turn.

    >>> [branch_score(u, now=1.5, first=0.5, weight=0.25) for u in (0.75, 0.1)]
    [0.5, 0.0]
    """
    return min(max(u - weight * (now - first), 0.0), 1.0)


def starts(
    keys: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode], group: int, branching: Branching, vocabulary: int
) -> Starts:
    """The episodes that can begin, as far as what was played shows, and where each forks; None is the beginning.

    It depends on nothing else, so that a run which was killed finds the same branches in its journal.

    Args:
        keys: E keys, each ``group`` in a row being the members of a group.
        played: those that have ended; while some that can begin have not, more may follow.
    """
    starts: Starts = {}
    for first in range(0, len(keys), group):
        starts |= _starts_of_group(keys[first : first + group], played, branching, vocabulary)
    return starts


def _starts_of_group(
    members: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode], branching: Branching, vocabulary: int
) -> Starts:
    begun: Starts = dict.fromkeys(members[: branching.initial])
    latest: Sequence[EpisodeKey] = list(begun)
    while len(begun) < len(members) and all(key in played for key in latest):
        rest = members[len(begun) :]
        episodes = [played[key] for key in latest]
        forks = list(islice(_forks(episodes, begun, branching, vocabulary), len(rest)))
        latest = rest[: len(forks)] if forks else rest
        begun |= dict(zip_longest(latest, forks))
    return begun


def _forks(episodes: Sequence[Episode], begun: Starts, branching: Branching, vocabulary: int) -> Iterator[Fork]:
    """Forks of the episodes of a round, in the order in which they get the remaining episodes."""
    sound = [episode for episode in episodes if not episode.ending.is_error]
    forks = list[Fork]()
    for turn in range(1, max((len(episode.turns) for episode in sound), default=0)):
        for episode in sound:
            fork = begun[episode.key]
            is_own = fork is None or turn > fork.turn
            if is_own and turn < len(episode.turns) and _branches(episode, turn, branching, vocabulary):
                forks.append(Fork(episode, turn))
    if branching.order == "random":
        forks.sort(key=lambda fork: generator("fork", *fork.parent.key, fork.turn).random())
    elif branching.order == "entropy":
        forks.sort(key=lambda fork: -_entropy(fork.parent, fork.turn, branching, vocabulary))
    for fork in forks:
        yield from repeat(fork, branching.siblings)


def _branches(episode: Episode, turn: int, branching: Branching, vocabulary: int) -> bool:
    first, now = (_entropy(episode, k, branching, vocabulary) for k in (0, turn))
    u = generator("branch", *episode.key, turn).random()
    return branch_score(u, now, first, branching.weight) <= branching.threshold


def _entropy(episode: Episode, turn: int, branching: Branching, vocabulary: int) -> float:
    ledger = episode.ledger
    assert ledger is not None, "an agent's episodes have a ledger"
    return start_entropy(ledger.reply_entropies(turn), vocabulary, branching.tokens)


def repeats(episodes: Sequence[Episode], begun: Starts) -> FloatK:
    """The member whose turn each of all K turns repeats; NaN where it is the episode's own."""
    columns = [np.full(len(episode.turns), np.nan) for episode in episodes]
    for column, episode in zip(columns, episodes, strict=True):
        if fork := begun[episode.key]:
            column[: fork.turn] = fork.parent.key.member
    return np.concatenate(columns)


def drawn_tokens(episodes: Sequence[Episode], begun: Starts) -> int:
    """Tokens that were drawn for the episodes; those that are repeated were drawn for another one."""
    drawn = 0
    for episode in episodes:
        fork, spans = begun[episode.key], [] if episode.ledger is None else episode.ledger.spans
        drawn += sum(span.end - span.start for span in spans[fork.turn if fork else 0 :])
    return drawn
