"""An episode as plain values and back, nothing lost: what a journal keeps so that it need not be played again."""

from collections.abc import Mapping
from typing import Any

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import (
    AdvisedPrompt,
    Branch,
    LastPrompt,
    Ledger,
    Span,
    commands_from_plain,
    commands_to_plain,
)
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.tasks.task import Task

_OBSERVATION = True  # in place of a text that is there already


def episode_to_plain(episode: Episode) -> dict[str, Any]:
    """The episode without its task, which its key names."""
    ledger = episode.ledger
    return {
        "key": list(episode.key),
        "turns": [_turn_to_plain(turn) for turn in episode.turns],
        "ending": episode.ending.value,
        "cause": episode.cause,
        "success": episode.success,
        "last": episode.last,
        "attempts": episode.attempts,
        **({} if episode.answer is None else {"answer": episode.answer}),
        **({"measures": episode.measures} if episode.measures else {}),
        **({"branches": None, "spans": None} if ledger is None else _ledger_to_plain(ledger)),
        **({} if ledger is None or not ledger.advised else {"advised": _advised(ledger.advised)}),
        **({"guidance": episode.guidance} if episode.guidance else {}),
        **({} if ledger is None or ledger.plain is None else {"plain": _ledger_to_plain(ledger.plain)}),
    }


def episode_from_plain(plain: Mapping[str, Any], task: Task) -> Episode:
    """Inverse of ``episode_to_plain``.

    Raises:
        ValueError: it was an attempt at another task.
    """
    key = EpisodeKey(*plain["key"])
    if key.task != task.id:
        raise ValueError(f"an episode of {key.task}, not of {task.id}")
    ledger = None
    if plain["branches"] is not None:
        ledger = _ledger(plain)
        if "plain" in plain:
            ledger.plain = _ledger(plain["plain"])
            ledger.plain.is_plain = True
        ledger.advised = {turn: AdvisedPrompt(common, tuple(rest)) for turn, common, rest in plain.get("advised", ())}
    return Episode(
        key=key,
        task=task,
        turns=[_turn(fields) for fields in plain["turns"]],
        ending=Ending(plain["ending"]),
        cause=plain["cause"],
        success=plain["success"],
        last=plain["last"],
        ledger=ledger,
        attempts=plain["attempts"],
        answer=plain.get("answer"),
        measures=plain.get("measures", {}),
        guidance=plain.get("guidance", ""),
    )


def _ledger_to_plain(ledger: Ledger) -> dict[str, Any]:
    return {
        "branches": [_branch_to_plain(branch) for branch in ledger.branches],
        "spans": [[getattr(span, name) for name in Span.__slots__] for span in ledger.spans],
        **({} if ledger.unanswered is None else {"unanswered": _unanswered(ledger.unanswered)}),
    }


def _ledger(plain: Mapping[str, Any]) -> Ledger:
    ledger = Ledger([_branch(fields) for fields in plain["branches"]], [Span(*fields) for fields in plain["spans"]])
    if "unanswered" in plain:
        ledger.unanswered = LastPrompt(*plain["unanswered"])
    return ledger


def _branch_to_plain(branch: Branch) -> list[Any]:
    *fields, allowed, commands = vars(branch).values()
    if not allowed and not commands:
        return fields
    limits = [[[place, list(tokens)] for place, tokens in allowed.items()], commands_to_plain(branch)]
    return [*fields, *limits[: 2 if commands else 1]]


def _branch(fields: list[Any]) -> Branch:
    values = dict(zip(Branch.__dataclass_fields__, fields, strict=False))  # the last ones are left out where empty
    values["allowed"] = {place: tuple(tokens) for place, tokens in values.get("allowed", ())}
    values["commands"] = commands_from_plain(values.get("commands", ()))
    return Branch(**values)


def _unanswered(prompt: LastPrompt) -> list[Any]:
    return [list(prompt.ids), prompt.role]


def _advised(prompts: Mapping[int, AdvisedPrompt]) -> list[Any]:
    return [[turn, prompt.common, list(prompt.rest)] for turn, prompt in prompts.items()]


def _turn_to_plain(turn: TurnRecord) -> list[Any]:
    values = {name: getattr(turn, name) for name in TurnRecord.__slots__}
    if turn.anchor_text == turn.observation:
        values["anchor_text"] = _OBSERVATION
    return list(values.values())


def _turn(fields: list[Any]) -> TurnRecord:
    values: dict[str, Any] = dict(zip(TurnRecord.__slots__, fields, strict=True))
    for name in ("seconds", "pieces"):  # JSON has no tuples
        values[name] = tuple(values[name])
    if values["usage"] is not None:
        values["usage"] = Usage(*values["usage"])
    if values["anchor_text"] is _OBSERVATION:
        values["anchor_text"] = values["observation"]
    return TurnRecord(**values)
