"""Vectors of texts: each text is asked for once, and its vector is stored under the hash of model and text."""

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.experience.budget import BudgetConfig, Purse
from manyturn.agents.records.episode_log import Journal, journal_entries
from manyturn.agents.tokens.usage import NOTHING, Spent, Usage
from manyturn.envs.contract.random_keys import digest

FILE = "embeddings.jsonl"
_SETTINGS = {"embeddings": 1}
Vector = NDArray[np.float32]


class Embedded(NamedTuple):
    """Vectors of texts, in their order, and what they took."""

    vectors: Sequence[Sequence[float]]
    usage: Usage


class Embeddings(Protocol):
    """A source of vectors.

    Attributes:
        name: of the model, with what tells it from others of that name.
        batch: most texts of one request.
    """

    name: str
    batch: int

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """The vectors of texts, none of which is blank.

        Raises:
            EngineError: there are none.
        """
        ...


class Vectors:
    """Vectors of length 1 by text.

    Texts that are asked for while a request is under way go into the next one together.

    Args:
        source: gives vectors.
        longest: characters of a text that count.

    Attributes:
        round: the round of an improvement that pays for what is asked for now.
        spent: tokens and cost of the vectors, by round; those of earlier calls included.
    """

    def __init__(self, source: Embeddings, longest: int):
        self._source, self._longest = source, longest
        self._vectors: dict[str, Vector] = {}
        self._pending: dict[str, str] = {}
        self._path: Path | None = None
        self._journal: Journal | None = None
        self._purse = Purse(BudgetConfig())
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self.round, self.spent = 0, dict[int, Spent]()

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Take the vectors of a file, and give its lines; none where there is no file."""
        entries = journal_entries(path)
        for entry in entries:
            self._vectors[entry["text"]] = np.frombuffer(base64.b64decode(entry["vector"]), "<f4")
        return entries

    def begin(self, path: Path | None, purse: Purse | None = None) -> None:
        """Store vectors in a file, which is made with the first of them; those in it are not asked for again."""
        self._path, self._purse = path, purse or self._purse
        for entry in [] if path is None else self.read(path):
            self._count(entry["round"], Spent(*entry["spent"]))

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.__exit__(None, None, None)
            self._journal = None

    def recall(self, number: int) -> None:
        """Pay from now on for a round, and count what it took in earlier calls against the budget."""
        self.round = number
        self._purse.add(self.spent.get(number, NOTHING))

    @property
    def total(self) -> Spent:
        """Spending of all rounds."""
        return NOTHING.plus(*self.spent.values())

    async def of(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts, none of which is blank.

        Raises:
            EngineError: the source gives none.
            BudgetSpent: there is no budget left.
        """
        keys = {self._key(text): text[: self._longest] for text in texts}
        self._pending |= {key: text for key, text in keys.items() if key not in self._vectors}
        if not self._vectors.keys() >= keys.keys():
            async with self._alone():
                # What others have asked for in the meantime is there by now, or comes with this.
                while missing := [key for key in keys if key not in self._vectors]:
                    await self._ask(list(dict.fromkeys([*missing, *self._pending]))[: self._source.batch], keys)
        return [self._vectors[self._key(text)] for text in texts]

    async def _ask(self, keys: Sequence[str], own: dict[str, str]) -> None:
        self._purse.check()
        texts = [own.get(key) or self._pending[key] for key in keys]
        embedded = await self._source.embed(texts)
        spent, usage = NOTHING, embedded.usage
        for key, vector in zip(keys, map(_unit, embedded.vectors), strict=True):
            if key == keys[0]:  # the first line of a request has what all of it took
                spent = NOTHING.plus(usage)
            self._vectors[key] = vector
            self._pending.pop(key, None)
            line = {"text": key, "vector": base64.b64encode(vector.tobytes()).decode(), "round": self.round}
            self._store({**line, "spent": spent})
            spent = NOTHING
        self._count(self.round, NOTHING.plus(usage))
        self._purse.pay(usage)

    def _store(self, entry: dict[str, Any]) -> None:
        if self._path is None:
            return
        if self._journal is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(self._path, _SETTINGS).__enter__()
        self._journal.append(entry)

    def _count(self, number: int, spent: Spent) -> None:
        self.spent[number] = self.spent.get(number, NOTHING).plus(spent)

    def _key(self, text: str) -> str:
        return digest("embedding", self._source.name, text[: self._longest])

    def _alone(self) -> asyncio.Lock:
        # A lock belongs to an event loop, while a policy may be used in several, one after the other.
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = (loop, asyncio.Lock())
        return self._turn[1]


def _unit(vector: Sequence[float]) -> Vector:
    """A vector at length 1. Raises EngineError for one that has no direction."""
    numbers = np.asarray(vector, np.float64)
    length = float(np.linalg.norm(numbers))
    if not (np.isfinite(length) and length > 0):
        raise EngineError("an embedding without a direction, all zeros or not finite: give another --retrieval.model")
    return (numbers / length).astype("<f4")
