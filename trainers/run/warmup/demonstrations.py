"""Demonstrations of the warm-up: episodes of the expert, of a random policy without one, or trajectories.

Before anything is learnt from them they are compared with what the policy may say and read: a reply that is cut never
means what was demonstrated, and an episode that does not fit its context ends before its goal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Ending, Episode
from manyturn.agents.play.role_episodes import role_views
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.play.rollout.rollout_batch import reply_lengths, unscorable
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.external_trajectories import written
from manyturn.trainers.run.warmup.imitation_samples import imitation_samples, wrong_on_purpose

Plan = Sequence[tuple[Task, EpisodeKey]]

_FIRST = 32  # demonstrations that are played before the others, so that what does not fit is found in seconds
_FEW = 0.05  # share of demonstrations that may not fit: the policy will not reach these, and the run goes on
_WIDER = 64  # times agent.max_context: how far demonstrations are measured that do not fit
_MEASURED = 16  # demonstrations that are measured so


@dataclass(frozen=True)
class Demonstrations:
    """The episodes to imitate.

    Attributes:
        samples: for each policy that is trained, its sequences.
        shown: contents of the tasks.
        longest: tokens of the longest reply.
        reply: a reply of them.
        invalid: share of their turns that are invalid on purpose.
    """

    samples: list[list[Sample]]
    shown: set[str]
    longest: int
    reply: str
    invalid: float = 0.0


async def demonstrations(run: Run, note: Callable[[str], None]) -> Demonstrations:
    """Play them.

    Args:
        note: is told of demonstrations that do not fit, if they are few.

    Raises:
        ConfigError: they do not fit sampling.max_tokens or agent.max_context, or none reached the goal.
    """
    if run.config.warmup.trajectories is not None:
        return await _of_trajectories(run, note)
    episodes = await _played(run, note)
    good = learnt_from(run, episodes)
    if shown := _demonstrations(run, good, {episode.task.content for episode in good}):
        return shown
    raise ConfigError(_nothing_to_imitate(run, episodes))


async def _of_trajectories(run: Run, note: Callable[[str], None]) -> Demonstrations:
    recorded = written(run, note, _WIDER)
    if notice := await _check_room(run, None, recorded.episodes):
        note(notice)
    room = run.config.sampling.max_tokens
    fit = [episode for episode in recorded.episodes if _needed(episode, room) <= run.config.agent.max_context]
    if shown := _demonstrations(run, fit, recorded.contents):
        return shown
    raise ConfigError(
        f"the {len(fit)} trajectories in {run.config.warmup.trajectories} that fit have no valid turn for each policy "
        "that is trained: name others as warmup.trajectories"
    )


async def _played(run: Run, note: Callable[[str], None]) -> list[Episode]:
    config, seed, teacher = run.config.warmup, run.config.seed, _teacher(run)
    count = config.episodes if isinstance(config.episodes, int) else _FIRST
    rng = generator("demonstrations", seed)
    tasks = [
        run.train[numbers[int(n)]]
        for numbers, share in run.shares(count, rng)
        for n in rng.choice(len(numbers), size=min(share, len(numbers)), replace=False)
    ]
    if run.config.envs:  # the first ones show what does not fit in any of them
        tasks = [tasks[int(n)] for n in rng.permutation(len(tasks))]
    plan = [(task, EpisodeKey(seed, "demonstration", task.id, 0)) for task in tasks]
    episodes = await _play(run, teacher, plan[:_FIRST], of=len(plan))
    await _check_room(run, teacher, episodes)
    if len(plan) > _FIRST:
        episodes += await _play(run, teacher, plan[_FIRST:], of=len(plan))
        if notice := await _check_room(run, teacher, episodes):
            note(notice)
    return episodes


async def play_demonstrations(run: Run, numbers: Sequence[int], stage: str, policy_share: float) -> list[Episode]:
    """Demonstrations of the training tasks with these numbers.

    Args:
        stage: their episodes' own.
        policy_share: share of turns at which the policies themselves reply; engines must be awake for it.
    """
    tasks = [run.train[number] for number in numbers]
    plan = [(task, EpisodeKey(run.config.seed, stage, task.id, place)) for place, task in enumerate(tasks)]
    return await _play(run, _teacher(run), plan, of=len(plan), policy_share=policy_share)


def learnt_from(run: Run, episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes to imitate: successful ones; or all that were not errors, by ``warmup.labels``.

    Raises:
        ConfigError: there are none, or a policy would have nothing to learn from.
    """
    only_successful = run.config.warmup.labels == "actions"
    good = [
        episode
        for episode in episodes
        if (episode.success if only_successful else bool(episode.turns) and not episode.ending.is_error)
    ]
    if not good or not all(samples_by_policy(run, good)):
        raise ConfigError(_nothing_to_imitate(run, episodes))
    return good


def samples_by_policy(run: Run, good: Sequence[Episode]) -> list[list[Sample]]:
    """The sequences that each policy imitates of these episodes."""
    config = run.config.warmup
    observed, among_all = bool(config.observed), config.among == "vocabulary"
    return [imitation_samples(own, observed=observed, among_all=among_all) for own in _views(run, good)]


def _views(run: Run, good: Sequence[Episode]) -> list[list[Episode]]:
    """For each policy that is trained, the episodes of its roles."""
    parted = [view for episode in good for view in role_views(episode, run.roles)]
    return [[view.episode for view in parted if view.role in t.taught] for t in run.trainees]


def _demonstrations(run: Run, good: Sequence[Episode], shown: set[str]) -> Demonstrations | None:
    """The demonstrations in these episodes; None where a policy would have nothing to learn from."""
    views, samples = _views(run, good), samples_by_policy(run, good)
    if not all(samples):
        return None
    turns = [pair for own in views for view in own for pair in zip(view.turns, wrong_on_purpose(view), strict=True)]
    reply = next(turn.reply for turn, is_wrong in turns if not is_wrong)
    share = sum(is_wrong for _, is_wrong in turns) / len(turns)
    return Demonstrations(samples, shown, _longest(good), reply, share)


async def expert_reply_tokens(run: Run) -> int | None:
    """Tokens of the longest reply in a few demonstrations; None without an expert."""
    if not run.seats.facts.has_expert:
        return None
    shares = run.shares(_MEASURED, generator("expert replies", run.config.seed))
    plan = [(run.train[n], _key(run, n)) for numbers, share in shares for n in numbers[:share]]
    played = await _play(run, Scripted(0.0), plan, of=len(plan), max_context=_WIDER * run.config.agent.max_context)
    return _longest(played) or None


def _key(run: Run, number: int) -> EpisodeKey:
    return EpisodeKey(run.config.seed, "demonstration", run.train[number].id, 0)


def _teacher(run: Run) -> Scripted:
    config = run.config.warmup
    return Scripted(config.noise if run.seats.facts.has_expert else 1.0, config.invalid)


async def _play(
    run: Run, teacher: Scripted, plan: Plan, of: int, max_context: int | None = None, policy_share: float = 0.0
) -> list[Episode]:
    """Demonstrations, of which there are ``of`` in all: a share of those may end in errors."""
    patience = run.patience
    return await gather(
        run.seats,
        run.demonstrator(teacher, max_context, policy_share),
        plan,
        max_turns=run.config.rollout.max_turns,
        patience=replace(patience, error_share=patience.error_share * of / len(plan)),
        breaker=run.breaker,
    )


async def _check_room(run: Run, teacher: Scripted | None, episodes: Sequence[Episode]) -> str | None:
    """A notice about demonstrations that do not fit, where they are few. Raises ConfigError where they are not.

    Args:
        teacher: plays once more, with more room, those that did not fit; None where nobody can.
    """
    max_tokens, max_context = run.config.sampling.max_tokens, run.config.agent.max_context
    full = [episode for episode in episodes if _is_full(episode)]
    fit = [episode for episode in episodes if episode.success]
    few = _FEW * (len(fit) + len(full))
    wide: list[Episode] = []
    if full and teacher is not None:
        plan = [(episode.task, episode.key) for episode in full[:_MEASURED]]
        wide = await _play(run, teacher, plan, of=len(plan), max_context=_WIDER * max_context)
    longest = _longest([*fit, *wide])
    long = sum(_longest([episode]) > max_tokens for episode in fit) + (len(full) if _longest(wide) > max_tokens else 0)
    room = max(longest, max_tokens) if long > few else max_tokens
    crowded = sum(_needed(episode, room) > max_context for episode in fit) + len(full)
    whose = "the expert's" if teacher is not None and run.seats.facts.has_expert else "the demonstrated"
    facts, fixes = [], []
    if long:
        facts.append(f"{whose} replies have up to {longest} tokens, sampling.max_tokens is {max_tokens}")
        fixes.append(f"--sampling.max-tokens {longest}")
    if crowded:
        needed = max(_needed(episode, room) for episode in [*fit, *wide])
        endless = any(map(_is_full, wide))
        up_to = f"more than {_WIDER * max_context}" if endless else f"up to {needed}"
        facts.append(f"prompt and reply take {up_to} tokens together, agent.max_context is {max_context}")
        fixes.append("shorter observations, or --agent.context window" if endless else f"--agent.max-context {needed}")
    if not facts:
        return None
    fault = f"{'; '.join(facts)}, too few for {max(long, crowded)} of {len(fit) + len(full)} demonstrations"
    if max(long, crowded) > few:
        raise ConfigError(f"{fault}: give {' '.join(fixes)}")
    return f"{fault}: the policy cannot do as they do; {' '.join(fixes)} would let it"


def _is_full(episode: Episode) -> bool:
    return episode.ending is Ending.TRUNCATED and episode.cause == "context"


def _longest(episodes: Sequence[Episode]) -> int:
    """Tokens of the longest action; inner turns have a limit of their own, which they are demonstrated within."""
    lengths = (
        length
        for episode in episodes
        for turn, length, is_wrong in zip(episode.turns, reply_lengths(episode), wrong_on_purpose(episode), strict=True)
        if not is_wrong and not turn.inner
    )
    return max(lengths, default=0)


def _needed(episode: Episode, room: int) -> int:
    """Tokens of the longest prompt with the room that a reply must have."""
    spans = [] if episode.ledger is None else episode.ledger.spans
    inner = {number for number, turn in enumerate(episode.turns) if turn.inner}
    rooms = (0 if number in inner else room for number in range(len(spans)))
    pairs = zip(spans, rooms, strict=True)
    return max((span.start + max(own, span.end - span.start) for span, own in pairs), default=0)


def _nothing_to_imitate(run: Run, episodes: Sequence[Episode]) -> str:
    config, has_expert = run.config.warmup, run.seats.facts.has_expert
    expert = f"the expert with warmup.noise = {config.noise}" + f" and warmup.invalid = {config.invalid}" * bool(
        config.invalid
    )
    by = expert if has_expert else "a random policy (there is no expert)"
    scored = [episode for episode in episodes if not episode.ending.is_error]
    late = sum(episode.cause == "turns" for episode in scored)
    odd = [episode for episode in scored if math.isnan(episode.outcome)]
    fixes = ["give the environment an expert()"] if not has_expert else ["lower warmup.noise"] if config.noise else []
    fixes += ["lower warmup.invalid"] if config.invalid else []
    if odd:
        why, fixes = f"rewards are not numbers: {unscorable(odd[0])}", ["return a number"]
    elif late > len(scored) / 2:
        why = f"{late} of them ran into the limit of turns"
        fixes.append("raise rollout.max_turns or the environment's own limit")
    else:
        why = f"{len(scored) - late} of them ended without success"
        fixes.append("see manyturn check, which plays the expert without noise" if has_expert else "make it easier")
    return (
        f"none of the {len(episodes)} demonstrations by {by} reached the goal, so that there is nothing to imitate. "
        f"{why[0].upper()}{why[1:]}: {', '.join(fixes)}, or set warmup.episodes = 0 to begin without a warm-up"
    )
