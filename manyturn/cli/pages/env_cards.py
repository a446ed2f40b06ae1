"""Cards of environments, with figures that are measured when they are asked for."""

import importlib.metadata
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_origin

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.cli.pages.env_pages import SECTIONS, described
from manyturn.envs.conformance.length_speed_checks import pace
from manyturn.envs.conformance.probe_episodes import Policy, Subject, by_expert, by_random_policy, text_env_of
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.env_registry import is_elsewhere
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.local.subprocess_call import OneShot, OneShotLost
from manyturn.terminal.escape import visible


@dataclass(frozen=True)
class Level:
    """An environment at one difficulty.

    Attributes:
        difficulty: its name; None where there is no choice.
        splits: split -> number of tasks.
        measured_on: the split that was played, and how many of its tasks.
        expert, random: share of these tasks that the policy solves; None without an expert.
        turns_per_second: of the environment alone, on one core of this machine.
    """

    difficulty: str | None
    max_turns: int | None
    splits: Mapping[str, int]
    measured_on: tuple[str, int]
    expert: float | None
    random: float
    turns_per_second: float


@dataclass(frozen=True)
class Card:
    """Card of an environment: the facts to read before using it; ``dataclasses.asdict`` gives JSON values.

    Attributes:
        sections: title -> what the class's docstring says: task, observation, actions, reward and so on.
        anchor: how situations are recognised: by the task and the observation, or by a key of the environment's own.
        licence: what the package that it comes from says.
    """

    env: str
    about: str
    sections: Mapping[str, str]
    instructions: str
    anchor: str
    has_expert: bool
    licence: str | None
    levels: tuple[Level, ...]


def card(name: str, env_args: Mapping[str, Any] | None = None, samples: int = 200, timeout: float = 60.0) -> Card:
    """Measure an environment, in a process of its own.

    Args:
        name: id or ``FILE.py:Class``.
        env_args: arguments of its constructor, plain JSON values; with ``difficulty`` only that one is measured.
        samples: tasks that the expert and the random policy play, each once.
        timeout: seconds that the environment may take for one answer.

    Raises:
        OneShotLost: it did not answer in time, or ended its process.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    hello = hello_of(name, env_args)
    with OneShot(measured, (hello["name"], hello["kwargs"], samples), hello, timeout) as work:
        try:
            [values] = work
        except OneShotLost as lost:
            raise OneShotLost(f"{name} cannot be measured: {lost}") from None
    levels = [Level(**{**level, "measured_on": tuple(level["measured_on"])}) for level in values["levels"]]
    return Card(**{**values, "env": name, "levels": tuple(levels)})


def measured(name: str, args: Mapping[str, Any], samples: int) -> Iterator[dict[str, Any]]:
    """The card as plain values; in the process that runs the environment."""
    subject = Subject(name, args, samples, 0)
    try:
        handle, bare = subject.handle, subject.handle.env.unwrapped
        text = described(type(bare))
        offered = () if "difficulty" in args else difficulties(type(bare))
        levels = [_level(name, {**args, "difficulty": each}, samples) for each in offered]
        card = Card(
            env=name,
            about=text.about,
            sections={title: " ".join(text.sections[title].split()) for title in SECTIONS if title in text.sections},
            instructions=handle.instructions,
            anchor=_anchor(subject.text_env),
            has_expert=handle.has_expert,
            licence=None if is_elsewhere(name) else _licence(type(bare)),  # what is played is not ours
            levels=tuple(levels or [_measure(subject, args.get("difficulty"))]),
        )
    finally:
        subject.close()
    yield asdict(card)


def difficulties(cls: type) -> tuple[str, ...]:
    """The levels that a constructor's argument ``difficulty`` takes: its Literal type's, or the class's ``levels``."""
    argument = inspect.signature(cls).parameters.get("difficulty")
    if argument is not None and get_origin(argument.annotation) is Literal:
        return tuple(map(str, get_args(argument.annotation)))
    return tuple(getattr(cls, "levels", ())) if argument is not None else ()


def _level(name: str, args: Mapping[str, Any], samples: int) -> Level:
    subject = Subject(name, args, samples, 0)
    try:
        return _measure(subject, args["difficulty"])
    finally:
        subject.close()


def _measure(subject: Subject, difficulty: str | None) -> Level:
    handle = subject.handle
    split = "validation" if "validation" in handle.splits else handle.splits[-1]
    tasks = subject.some_tasks(subject.samples, split)

    def success(policy: Policy) -> float:
        episodes = [subject.play(task, policy) for task in tasks]
        if error := next((played.error for played in episodes if played.error is not None), None):
            raise error
        return sum(bool(played.success) for played in episodes) / len(episodes)

    _, step, _, turns = pace(subject)
    return Level(
        difficulty=difficulty,
        max_turns=getattr(text_env_of(handle) or handle.env, "max_turns", None),
        splits={name: len(handle.tasks(name)) for name in handle.splits},
        measured_on=(split, len(tasks)),
        expert=success(by_expert) if handle.has_expert else None,
        random=success(by_random_policy),
        turns_per_second=turns / step.seconds,
    )


def _anchor(env: TextEnv | None) -> str:
    if env is None:
        return "observation"
    return "task and observation" if type(env).anchor is TextEnv.anchor else "own key"


def _licence(cls: type) -> str | None:
    try:
        about = importlib.metadata.metadata(cls.__module__.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return None
    return about["License-Expression"] or about["License"]


def print_card(card: Card, console: Console) -> None:
    """Show a card; nothing in it is markup."""

    def say(text: str, style: str = "", soft_wrap: bool = True) -> None:
        console.print(Text(visible(text, console.encoding), style), soft_wrap=soft_wrap)

    facts = [f"anchor: {card.anchor}", f"expert: {'yes' if card.has_expert else 'no'}"]
    facts += [f"licence: {card.licence}"] if card.licence else []
    say(card.env, "bold")
    say("\n".join(filter(None, (card.about, ", ".join(facts)))))
    for title, text in card.sections.items():
        say(f"{title}: {text}")
    say(f"\n{card.instructions.strip() or '(no instructions)'}\n", "italic", soft_wrap=False)
    table = Table("difficulty", "most turns", "expert", "random", "turns/s", "tasks")
    for level in card.levels:
        sizes = ", ".join(f"{name} {size:,}" for name, size in level.splits.items())
        most = "none" if level.max_turns is None else str(level.max_turns)
        cells = (level.difficulty or "-", most, _share(level.expert), _share(level.random))
        table.add_row(*(Text(visible(cell)) for cell in (*cells, f"{level.turns_per_second:,.0f}", sizes)))
    console.print(table)
    split, count = card.levels[0].measured_on
    say(f"expert and random: share of {count} {split} tasks that they solve, each played once, now and here\n", "dim")


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"
