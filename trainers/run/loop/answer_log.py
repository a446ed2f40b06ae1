"""Answers of endpoints that play roles or judge, kept until a checkpoint holds their step: no answer is paid for twice.

A model at an endpoint may answer the same request differently when it is asked again. A run that was killed plays a
step again where the engine keeps bits; it then gets the answers that it had, and comes to the same weights.
"""

import json
import re
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from manyturn.agents.play.endpoint.completion import Completion, NativeCall
from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.record.run_folder import RunFolder

_SETTINGS = {"answers": 1}
_OF_A_STEP = re.compile(r"train/(\d+)")  # stages; answers of all others, such as held-out tasks, are kept for good


class AnswerLog:
    """The answers of a run's endpoints, as a context manager."""

    def __init__(self, folder: RunFolder):
        self._folder = folder
        self._open, self._answers = dict[int | None, Journal](), dict[int | None, dict[str, dict[str, Any]]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for step in list(self._open):
            self._close(step)

    def get(self, key: EpisodeKey, request: str) -> Completion | None:
        """The answer to a request that was made before; None for a new one."""
        step = _step_of(key)
        self._journal(step)
        plain = self._answers[step].get(request)
        return None if plain is None else _completion(plain)

    def keep(self, key: EpisodeKey, request: str, answer: Completion) -> None:
        """Keep the answer to a request."""
        step, plain = _step_of(key), json.loads(json.dumps({**answer._asdict(), "reasoning": dict(answer.reasoning)}))
        with self._folder.writing():
            self._journal(step).append({"request": request, **plain})
        self._answers[step][request] = plain

    def _journal(self, step: int | None) -> Journal:
        """The journal of a step, whose file may have gone with a checkpoint since it was opened."""
        if (journal := self._open.get(step)) is not None and journal.path.exists():
            return journal
        for gone in [step for step, journal in self._open.items() if not journal.path.exists()]:
            self._close(gone)
        with self._folder.writing():
            self._open[step] = opened(self._folder.answer_file(step))
        self._answers[step] = {entry["request"]: entry for entry in self._open[step].entries}
        return self._open[step]

    def _close(self, step: int | None) -> None:
        with self._folder.writing():
            self._open.pop(step).__exit__(None, None, None)
        del self._answers[step]


def opened(path: Path) -> Journal:
    """A journal of answers; one that cannot be read begins again."""
    path.parent.mkdir(exist_ok=True)
    try:
        return Journal(path, _SETTINGS).__enter__()
    except JournalError:
        path.unlink()
        return Journal(path, _SETTINGS).__enter__()


def _step_of(key: EpisodeKey) -> int | None:
    step = _OF_A_STEP.match(key.stage)
    return int(step[1]) if step else None


def _completion(plain: dict[str, Any]) -> Completion:
    """The answer as it was when it was kept."""
    counted, charged = (None if plain[name] is None else TokenCount(*plain[name]) for name in ("counted", "charged"))
    calls = tuple(NativeCall(*call) for call in plain["calls"])
    return Completion(
        plain["text"], calls, plain["cut"], counted, charged, plain["reasoning"], plain["finish"], plain["refused"]
    )
