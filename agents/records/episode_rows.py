"""Tables of what was played: a row an episode, a row a turn, with a fixed schema."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from manyturn.agents.play.episode import Episode, TurnRecord
from manyturn.agents.records.tables import Kind, RecordsError, Row, Schema, open_table, write_table
from manyturn.agents.tokens.usage import Spent, Usage

SCHEMA_VERSION = 9

_TEXT: Kind = "text"
_INT: Kind = "int"
_FLOAT: Kind = "float"
_FLAG: Kind = "flag"
_TEXTS: Kind = "texts"
_FLOAT32S: Kind = "float32s"
_FIGURES: Kind = "figures"

_COUNTED = ("prompt_tokens", "reply_tokens", "cost", "cut_replies")
EPISODES = Schema(
    "episodes",
    SCHEMA_VERSION,
    {
        "task": _TEXT,
        "content": _TEXT,  # hash of the problem
        "split": _TEXT,
        "difficulty": _TEXT,
        "tags": _TEXTS,
        "member": _INT,
        "stage": _TEXT,
        "seed": _INT,  # the run's
        "success": _FLAG,  # null after an error
        "return": _FLOAT,  # sum of rewards; null after an error, and where it is no finite number
        "ending": _TEXT,
        "cause": _TEXT,
        "attempts": _INT,
        "turns": _INT,  # without inner turns
        "inner_turns": _INT,
        "prompt_tokens": _INT,  # of all prompts; token counts and cost are null where they were not counted
        "reply_tokens": _INT,
        "last_prompt_tokens": _INT,
        "computed_tokens": _INT,  # of a forward pass over what the policy saw and said
        "cost": _FLOAT,  # at the prices that were given, in their currency
        "cut_replies": _INT,  # replies that ended at their limit of tokens; null where that is not known
        "invalid_actions": _INT,  # turns whose format was broken, or whose action was not understood
        "broken_formats": _INT,
        "faults": _FIGURES,  # how many replies meant nothing, by cause
        "not_understood": _INT,
        "choices": _FLOAT,  # mean number of admissible commands, over the turns that list them; null if none does
        "parts": _FIGURES,  # sum of each reward part over the turns; null where it is no finite number
        "last": _TEXT,  # the final observation
        "measures": _FIGURES,  # further figures of the environment's
        "seconds_policy": _FLOAT,
        "seconds_env": _FLOAT,
    },
    nullable=frozenset(
        ("difficulty", "success", "return", *_COUNTED, "last_prompt_tokens", "computed_tokens", "choices")
    ),
)
_TURN_FIELDS: dict[str, Kind] = {
    "task": _TEXT,
    "stage": _TEXT,
    "member": _INT,
    "turn": _INT,  # from 0
    "role": _TEXT,  # who acted
    "observation": _TEXT,
    "reply": _TEXT,
    "reasoning": _TEXT,  # of the reply, or next to it in a server's answer; empty without any
    "action": _TEXT,  # empty where the reply was cut: then the environment was not asked
    "inner": _TEXT,  # kind of an inner turn, such as plan, which the environment did not see; null for an action
    "fault": _TEXT,  # why the reply meant nothing: cut, filtered, refused, empty, arguments or format; else null
    "format_valid": _FLAG,  # an action could be read from the reply
    "understood": _FLAG,  # the action meant something to the environment
    "reward": _FLOAT,
    "reward_parts": _FIGURES,
    "anchor": _TEXT,
    "progress": _FLOAT,
    "return_to_go": _FLOAT,  # sum of this reward and all later ones, undiscounted; null after an error
    "choices": _INT,  # how many admissible commands there were; null where none are listed
    "prompt_tokens": _INT,  # this and the next three are null where they were not counted
    "reply_tokens": _INT,
    "cut": _FLAG,  # whether the reply ended at its limit of tokens
    "cost": _FLOAT,
    "logprob_mean": _FLOAT,  # of the reply's tokens, as the engine gave them
    "tokens": _TEXTS,  # the reply token by token; this and the next two are null for policies without tokens
    "logprobs": _FLOAT32S,  # of each token, as the engine gave them
    "entropies": _FLOAT32S,  # in nats, of what each token was drawn from; null where unknown
    "policy_version": _INT,
    "seconds_policy": _FLOAT,
    "seconds_env": _FLOAT,
}
_OF_TOKENS = ("logprob_mean", "tokens", "logprobs", "entropies", "policy_version")
_TURN_NULLABLE = ("inner", "fault", "progress", "return_to_go", "choices", *Usage._fields, *_OF_TOKENS)


def turn_schema(extra: Iterable[str] = ()) -> Schema:
    """The schema of turns, followed by further columns of numbers."""
    kinds: dict[str, Kind] = {**_TURN_FIELDS, **{name: _FLOAT for name in extra}}
    return Schema("turns", SCHEMA_VERSION, kinds, frozenset((*_TURN_NULLABLE, *extra)))


TURNS = turn_schema()


def episode_rows(episodes: Sequence[Episode]) -> list[Row]:
    """E rows of the schema ``EPISODES``."""
    return [_episode_row(episode) for episode in episodes]


def turn_rows(episodes: Sequence[Episode], extra_columns: Mapping[str, ArrayLike] | None = None) -> list[Row]:
    """K rows of the schema ``turn_schema(extra_columns)``: the turns of all episodes, in order.

    Args:
        episodes: E episodes with K turns in all.
        extra_columns: name -> K numbers, such as advantages.
    """
    rows = [row for episode in episodes for row in _turn_rows(episode)]
    for name, column in (extra_columns or {}).items():
        values_K = np.asarray(column, np.float64)
        if name in _TURN_FIELDS:
            raise RecordsError(f"turns have a column {name!r} of their own: name the extra column otherwise")
        if values_K.shape != (len(rows),):
            raise RecordsError(f"the extra column {name!r} has shape {values_K.shape}, but there are {len(rows)} turns")
        for row, value in zip(rows, values_K.tolist(), strict=True):
            row[name] = value
    return rows


def write_episodes(path: Path, episodes: Sequence[Episode]) -> None:
    """Write E episodes to a file."""
    write_table(path, episode_rows(episodes), EPISODES)


def write_turns(path: Path, episodes: Sequence[Episode], extra_columns: Mapping[str, ArrayLike] | None = None) -> None:
    """Write the K turns of episodes to a file; see ``turn_rows``."""
    write_table(path, turn_rows(episodes, extra_columns), turn_schema(extra_columns or ()))


def read_episodes(path: Path) -> list[Row]:
    """The rows of a file of episodes; raises RecordsError if it is none, or damaged."""
    return open_table(path, EPISODES).read().rows()


def read_turns(path: Path) -> list[Row]:
    """The rows of a file of turns, extra columns included; raises RecordsError if it is none, or damaged."""
    return open_table(path, TURNS).read().rows()


def _clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, as replacement marks."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    return text


def _episode_row(episode: Episode) -> Row:
    task, key, turns, ledger = episode.task, episode.key, episode.turns, episode.ledger
    choices = [turn.choices for turn in turns if turn.choices is not None]
    outcome = episode.outcome
    return {
        "task": _clean(task.id),
        "content": task.content,
        "split": _clean(task.split),
        "difficulty": None if task.difficulty is None else _clean(task.difficulty),
        "tags": [_clean(tag) for tag in task.tags],
        "member": key.member,
        "stage": key.stage,
        "seed": key.seed,
        "success": episode.success,
        "return": _finite(outcome),
        "ending": episode.ending.value,
        "cause": _clean(episode.cause),
        "attempts": episode.attempts,
        "turns": episode.actions,
        "inner_turns": len(turns) - episode.actions,
        **_counted(episode),
        "computed_tokens": None if ledger is None else ledger.computed_tokens,
        "invalid_actions": sum(not turn.valid for turn in turns),
        "broken_formats": sum(not turn.format_valid for turn in turns),
        "faults": dict(Counter(turn.fault for turn in turns if turn.fault is not None)),
        "not_understood": sum(not turn.understood for turn in turns),
        "choices": sum(choices) / len(choices) if choices else None,
        "parts": part_sums(turns),
        "last": _clean(episode.last),
        "measures": {_clean(name): _finite(value) for name, value in episode.measures.items()},
        "seconds_policy": float(sum(turn.seconds[0] for turn in turns)),
        "seconds_env": float(sum(turn.seconds[1] for turn in turns)),
    }


def part_sums(turns: Sequence[TurnRecord]) -> dict[str, float | None]:
    """Reward part -> its sum over K turns, None where that is no finite number."""
    sums: dict[str, float] = {}
    for turn in turns:
        for name, value in turn.parts.items():
            sums[_clean(name)] = sums.get(_clean(name), 0.0) + value
    return {name: _finite(total) for name, total in sums.items()}


def _finite(value: float) -> float | None:
    """A number that means can be made of, or None."""
    return value if np.isfinite(value) else None


def _counted(episode: Episode) -> Row:
    """Usage of an episode's replies, as far as it is known; with a ledger also of the reply that it died of, and of a
    search."""
    usages = [turn.usage for turn in episode.turns if turn.usage is not None]
    counts = Spent().plus(*usages)._asdict()
    cut = [usage.cut for usage in usages if usage.cut is not None]
    last = usages[-1].prompt_tokens if usages else None
    if episode.ledger is not None:
        spans, beside = episode.ledger.spans, episode.ledger.beside
        counts["prompt_tokens"] = sum(span.start for span in spans) + (beside.prompt_tokens or 0)
        counts["reply_tokens"] = sum(span.end - span.start for span in spans) + (beside.reply_tokens or 0)
        last = spans[-1].start if spans else 0
    return {**counts, "last_prompt_tokens": last, "cut_replies": sum(cut) if cut else None}


def _turn_rows(episode: Episode) -> list[Row]:
    to_go = np.cumsum([turn.reward for turn in episode.turns][::-1])[::-1].tolist()
    rows = []
    for number, turn in enumerate(episode.turns):
        row: Row = {
            "task": _clean(episode.key.task),
            "stage": episode.key.stage,
            "member": episode.key.member,
            "turn": number,
            "role": turn.role,
            "observation": _clean(turn.observation),
            "reply": _clean(turn.reply),
            "reasoning": _clean(turn.reasoning),
            "action": _clean(turn.action),
            "inner": turn.inner or None,
            "fault": turn.fault,
            "format_valid": turn.format_valid,
            "understood": turn.understood,
            "reward": turn.reward,
            "reward_parts": {_clean(name): value for name, value in turn.parts.items()},
            "anchor": turn.anchor,
            "progress": None if turn.progress is None else float(turn.progress),
            "return_to_go": None if episode.ending.is_error else to_go[number],
            "choices": turn.choices,
            **(turn.usage or Usage())._asdict(),
            **dict.fromkeys(_OF_TOKENS),
            "seconds_policy": turn.seconds[0],
            "seconds_env": turn.seconds[1],
        }
        if episode.ledger is not None:
            ledger = episode.ledger
            span, logprobs = ledger.spans[number], ledger.reply_logprobs(number)
            entropies = ledger.reply_entropies(number)
            row["prompt_tokens"], row["reply_tokens"] = span.start, span.end - span.start
            row["policy_version"] = span.version
            row["logprob_mean"] = float(logprobs.mean()) if len(logprobs) else None
            row["tokens"], row["logprobs"] = [_clean(piece) for piece in turn.pieces], logprobs.tolist()
            row["entropies"] = None if np.isnan(entropies).any() else entropies.tolist()
        rows.append(row)
    return rows
