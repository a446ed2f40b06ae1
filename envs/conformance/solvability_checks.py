"""Checks of who reaches the goal: what success is, whether the expert has it, whether luck has it, and leaks."""

import re

from manyturn.envs.conformance.probe_episodes import NONSENSE, ProbedEpisode, Subject
from manyturn.envs.conformance.root_causes import TURNS
from manyturn.envs.conformance.verdicts import Doubt, Fault, Implied, Result, Skip
from manyturn.envs.hosting.handle.env_handle import EnvError

EXPERT_AT_LEAST = 0.95
MARGIN = 0.2  # by which the expert should be above a random policy, or tasks teach little
_SHORT = 2  # characters: an answer as short as this is found by coincidence too
_OFTEN = 0.5  # share of episodes in which coincidence does not find a short answer
SAY_SUCCESS = "put 'success' into info at the end, or set success_above on the class"


def success(subject: Subject) -> Result:
    """Rule of success: the way an environment says that the goal was reached."""
    if subject.handle.foreign is None:
        return "as self.succeed() and self.fail() say", {}
    for _ in subject.all_episodes():  # the last one's end is remembered
        pass
    if (key := subject.handle.foreign.success_by) is not None:
        return f"as info[{key!r}] says at the end", {}
    bound = subject.handle.foreign.success_above
    return f"an episode that terminated with a return above {bound:g}; to say otherwise {SAY_SUCCESS}", {}


def _rate(subject: Subject, episodes: list[ProbedEpisode], unended: bool | None = None) -> float:
    """Share of successes. Raises Skip where none is known, and Implied where that is since no turn could be played.

    Args:
        unended: verdict on an episode that has reached no end; None leaves it out.
    """
    verdicts = [played.success if played.steps[-1].ended else unended for played in _completed(episodes)]
    verdicts = [verdict for verdict in verdicts if verdict is not None]
    if not verdicts:
        _needs_turns(subject)
        raise Skip(f"success is not known: {SAY_SUCCESS}")
    return sum(verdicts) / len(verdicts)


def _needs_turns(subject: Subject) -> None:
    if TURNS in subject.failed:
        raise Implied(TURNS)


def expert(subject: Subject) -> Result:
    """The expert reaches the goal, so every task can be solved."""
    if not subject.handle.has_expert:
        raise Skip("no expert: override expert() to prove that tasks can be solved, and for demonstrations")
    _ask_off_path(subject)
    subject.raise_own("expert")
    played_of = {split: many for split, episodes in subject.expert_episodes.items() if (many := _completed(episodes))}
    rates = {split: _rate(subject, episodes, unended=False) for split, episodes in played_of.items()}
    if not rates:
        raise subject.causes.first
    if _is_never_paid(subject):
        raise Doubt(f"the expert's episodes terminate, but their return is never a success: {SAY_SUCCESS}", rates)
    for split, rate in rates.items():
        if rate < EXPERT_AT_LEAST:
            lost = [played.task.id for played in played_of[split] if not played.success]
            raise Fault(f"split {split}: the expert fails {len(lost)} tasks, such as {lost[0]}", rates)
    episodes = [played for many in played_of.values() for played in many]
    turns = sum(len(played.actions) for played in episodes) / len(episodes)
    return subject.shortened(len(episodes)), {**rates, "turns": turns}


def _ask_off_path(subject: Subject) -> None:
    """Note what the expert raises after an action that means nothing."""
    handle, first = subject.fresh(), subject.whim_episodes[0]
    try:
        handle.reset(first.task, first.seed)
        if not handle.step(NONSENSE).ended:
            handle.expert()
    except EnvError as error:
        if error.method == "expert":
            subject.causes.note(error, "expert")


def _completed(episodes: list[ProbedEpisode]) -> list[ProbedEpisode]:
    """Episodes that no error has ended: an error is no failure of a policy."""
    return [played for played in episodes if played.error is None]


def _is_never_paid(subject: Subject) -> bool:
    """True if no ending of the expert counts as a success by its rewards, as plain environments are judged."""
    ends = [played.steps[-1] for many in subject.expert_episodes.values() for played in _completed(many)]
    foreign = subject.handle.foreign
    judged = foreign is not None and foreign.success_by is None
    return judged and all(end.terminated for end in ends) and not any(end.success for end in ends)


def random_policy(subject: Subject) -> Result:
    """Random admissible actions do worse than the expert."""
    episodes = [played for many in subject.random_episodes.values() for played in many]
    if not any(step.admissible for played in episodes for step in played.steps):
        _needs_turns(subject)
        raise Skip("no admissible actions are listed: override admissible() to learn what a random policy achieves")
    luck = _rate(subject, episodes)
    if not subject.handle.has_expert:
        raise Skip(f"no expert to compare with; a random policy succeeds in {luck:.0%}")
    experts = [played for many in subject.expert_episodes.values() for played in many]
    if "expert" in subject.failed and not _completed(experts):
        raise Implied("expert")
    best = _rate(subject, experts)
    figures = {"random": luck, "expert": best}
    if luck > best - MARGIN or not best:
        if "expert" in subject.failed:
            raise Implied("expert")
        if not best:
            raise Skip("the expert has no success to compare with")
        text = "random actions do nearly as well as the expert, so there is little to learn: make tasks longer or"
        raise Doubt(f"{text} max_turns smaller, unless it is meant", figures)
    return subject.shortened(len(episodes)), figures


def leak(subject: Subject) -> Result:
    """The answer stays hidden until the end."""
    episodes = [played for played in subject.all_episodes() if played.answer]
    if not episodes:
        raise Skip("no answer(): override it where one text would give the solution away")
    leaks = [(played, turn) for played in episodes if (turn := _leaking_turn(played)) is not None]
    short = [played for played in episodes if len(played.answer or "") <= _SHORT]
    by_chance = [(played, turn) for played, turn in leaks if len(played.answer or "") <= _SHORT]
    if len(by_chance) <= _OFTEN * len(short):
        leaks = [leak for leak in leaks if leak not in by_chance]
    if leaks:
        played, turn = leaks[0]
        raise Fault(f"task {played.task.id}, turn {turn}: the observation contains {played.answer!r}")
    return "the answer appears at the end only", {}


def _leaking_turn(played: ProbedEpisode) -> int | None:
    """The first turn whose observation has the answer as words of its own, before the end."""
    answer = re.compile(rf"(?<!\w){re.escape(played.answer or '')}(?!\w)")
    texts = [step.observation for step in played.steps if not step.ended]
    return next((turn for turn, text in enumerate(texts) if answer.search(text)), None)
