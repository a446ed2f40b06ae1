"""Check of the first step of a run without a warm-up: can anything be learnt from it?"""

import math
from collections.abc import Sequence

from manyturn.agents.play.episode import Episode
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.rollout.rollout_batch import describe, is_learnable, unscorable
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.demonstrations import expert_reply_tokens

_LONGER = 4  # times sampling.max_tokens: what to try where no expert shows what a reply takes


async def check_first_step(run: Run, episodes: Sequence[Episode]) -> None:
    """Look at the episodes of the first step, before its update.

    Raises:
        LearningFailed: nearly all replies are cut, or no reward is a number.
    """
    scored = [episode for episode in episodes if is_learnable(episode)]
    if scored and all(math.isnan(episode.outcome) for episode in scored):
        raise LearningFailed(
            f"the rewards of all {len(scored)} episodes of the first step are not numbers, first "
            f"{unscorable(scored[0])}: there is nothing to learn from; return a number"
        )
    config = run.config
    begins_alone = not (config.warmup.episodes or config.warmup.from_run) and not config.model.vocabulary_tasks
    cut = describe(scored)["cut"]
    if begins_alone and config.rollout.cut_share < 1 and cut is not None and cut >= config.rollout.cut_share:
        raise LearningFailed(await _cut(run, scored, cut))


async def _cut(run: Run, episodes: Sequence[Episode], share: float) -> str:
    limit = run.config.sampling.max_tokens
    example = next(turn.reply for episode in episodes for turn in episode.turns)
    expert_tokens = await expert_reply_tokens(run) or 0
    enough = expert_tokens if expert_tokens > limit else _LONGER * limit
    shows = f", where the expert's have up to {expert_tokens} tokens" if expert_tokens else ""
    return (
        f"{share:.0%} of the replies of the first step are cut at sampling.max_tokens = {limit}, as {example!r:.80}"
        f"{shows}: try --sampling.max-tokens {enough}, or teach the policy to end them by a warm-up. "
        "With --rollout.cut-share 1 the run continues anyway"
    )
