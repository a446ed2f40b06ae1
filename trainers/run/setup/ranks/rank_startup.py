"""Runs whose policies several ranks learn: rank 0 leads, the others follow, and all of them build the same learners.

The others know no environment. Rank 0 tells them the configuration and the words of a model that has none of its own.
"""

import signal
from collections.abc import Sequence
from functools import partial

import torch

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.local.shutdown_watchdog import SIGNALS
from manyturn.trainers.learn.heads.heads import LearnerHead, ProgressHead, SharedHead, ValueHead
from manyturn.trainers.learn.learner.head_factory import head_of
from manyturn.trainers.learn.learner.learner import Share
from manyturn.trainers.learn.passes.forward import Reader
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.ranks.message import RankMessage
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.rank_learner import RankLearner
from manyturn.trainers.learn.ranks.rank_zero import Leading
from manyturn.trainers.learn.ranks.rendezvous import Meeting
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.run.setup.policy_model import choose_device, policy_model

_BEGIN = "begin"


def lead(ranks: Ranks, config: RunConfig, texts: Sequence[str], policies: int) -> list[Share]:
    """Have the other ranks build their learners; what rank 0's learners get, one for each policy.

    Raises:
        ConfigError: the engine would start ranks of its own, or an option has no effect with several ranks.
    """
    if config.engine.starts_ranks:
        raise ConfigError(
            f"engine.name = {config.engine.name!r} starts processes of its own next to the {ranks.size} ranks: take "
            "engine.name = 'transformers' or 'vllm-server', or train with one rank"
        )
    if config.learner.gives_states and config.learner.states_bytes:
        raise ConfigError(
            f"learner.states_gb = {config.learner.states_gb:g} has no effect with {ranks.size} ranks, which keep no "
            "hidden states: leave it out, or train with one rank"
        )
    if config.learner.compile:
        raise ConfigError(
            f"learner.compile does not go together with {ranks.size} ranks, which put layers together for each pass: "
            "leave it out, or train with one rank"
        )
    plain = {"config": config.model_dump(mode="json", exclude_none=True), "texts": list(texts), "policies": policies}
    ranks.tell(RankMessage(_BEGIN, plain))
    return [partial(_leading, ranks, config, texts, number) for number in range(policies)]


def _leading(
    ranks: Ranks,
    config: RunConfig,
    texts: Sequence[str],
    number: int,
    reader: Reader,
    heads: Sequence[LearnerHead],
) -> Leading:
    with ranks.together():
        return Leading(ranks, number, reader.model, _learner(ranks, config, texts, reader.budget, heads))


def follow_at(rank: int, size: int, address: str, port: int, *, all_here: bool) -> None:
    """As ``follow``, where rank 0 listens at an address; the others are those of ``Meeting``."""
    follow(Meeting.joined(rank, size, address, port, all_here=all_here))


def follow(meeting: Meeting | None = None) -> None:
    """Be one of the other ranks, until rank 0 says that the run is over.

    Args:
        meeting: as for ``Ranks``.

    Raises:
        RankLost: another rank has ended before.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # nothing is there yet that would have to end in order
    learners = list[RankLearner]()
    with Ranks(meeting) as ranks:
        for message in ranks.messages():
            with ranks.together():
                if message.what == _BEGIN:
                    learners = _learners(ranks, message)
                else:
                    learners[message.plain["policy"]].do(message)


def _learners(ranks: Ranks, message: RankMessage) -> list[RankLearner]:
    config, texts = parse_config(message.plain["config"]), message.plain["texts"]
    if config.threads:
        torch.set_num_threads(config.threads)
    budgets = [PassBudget(config.learner.micro_tokens) for _ in range(message.plain["policies"])]
    return [_learner(ranks, config, texts, budget) for budget in budgets]


def _learner(
    ranks: Ranks,
    config: RunConfig,
    texts: Sequence[str],
    budget: PassBudget,
    heads: Sequence[LearnerHead] | None = None,
) -> RankLearner:
    """The learner of a rank.

    Args:
        heads: rank 0's; None: this rank makes its own.
    """
    model, learner = policy_model(config, torch.device("cpu"), texts).model, config.learner
    device, sampling = choose_device(config.device), config.sampling
    if heads is None:
        learnt_heads = [head for head in (config.value, config.progress) if head is not None and not head.is_fixed]
        heads = [head_of(head, model, learner, budget, device=device) for head in learnt_heads]
    learning: list[SharedHead] = [head for head in heads if isinstance(head, ValueHead | ProgressHead)]
    reader = Reader(model, budget, sampling.temperature, learner.packing)
    return RankLearner(ranks, reader, device, learner, config.objective, learning)
