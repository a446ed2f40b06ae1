"""Rankings of texts by how much they resemble a query. Each kind is a file in ``rankings/``."""

import abc
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from manyturn.agents.experience.budget import Purse
from manyturn.agents.experience.retrieval.vectors import FILE, Vectors
from manyturn.agents.tokens.usage import NOTHING
from manyturn.envs.contract.options.options import one_line, set_values
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.options.registry import Named, Registry

_USUAL = "bm25"

Search = Callable[[str, int], Awaitable[list[str]]]
"""Gives the names of the texts that resemble a query most, the most similar first, and at most so many."""


class RetrievalConfig(Named):
    """Base of the options of retrieval."""

    @property
    def facts(self) -> dict[str, Any]:
        """The entries for retrieval in an experience: all that decides what is chosen, and no address; {} for BM25."""
        return self.model_dump(mode="json")


class Ranking(abc.ABC):
    """One kind of retrieval.

    Attributes:
        name: in the names of policies, by which an interrupted evaluation knows it again; empty for the usual one.
        vectors: of texts, where it compares these.
        price: USD for a million tokens, 0 where nothing is paid; None where it is not known.
    """

    name: str = ""
    vectors: Vectors | None = None
    price: float | None = 0.0

    @abc.abstractmethod
    def over(self, texts: Mapping[str, str]) -> Search:
        """A search among texts, by name."""

    def begin(self, folder: Path | None, source: Path | None = None, purse: Purse | None = None) -> None:
        """Begin to store what it asks for in a folder, with what is there already.

        Args:
            folder: None for this process's memory.
            source: file or folder of an experience, next to which there may be vectors.
            purse: what may be spent.
        """
        if self.vectors is None:
            return
        if source is not None:
            self.vectors.read((source if source.is_dir() else source.parent) / FILE)
        self.vectors.begin(None if folder is None else folder / FILE, purse)

    @property
    def remark(self) -> str:
        """A line on what vectors took, which no episode counts; empty where they took nothing."""
        spent = NOTHING if self.vectors is None else self.vectors.total
        cost = "" if spent.cost is None else f", cost {spent.cost:.4g} USD"
        return f"embeddings of observations took {spent.prompt_tokens} tokens{cost}" if spent.prompt_tokens else ""

    def close(self) -> None:
        """Close the file that it stores in, if any."""
        if self.vectors is not None:
            self.vectors.close()


RETRIEVALS: Registry[Ranking] = Registry("retrieval", "manyturn.agents.experience.retrieval.rankings")


def retrieval_of(facts: Mapping[str, Any], given: Any = None) -> RetrievalConfig:
    """The retrieval that an experience was made with, with what is given on top.

    Args:
        facts: as the experience has them; {} for BM25.
        given: a name, or a table of options; another name begins from defaults.

    Raises:
        ValueError: an option does not exist, or will not do.
    """
    try:
        base = RETRIEVALS.parse(dict(facts) or _USUAL)
        table = {"name": given} if isinstance(given, str) else given or {}
        if "name" not in table:
            return RETRIEVALS.parse(RETRIEVALS.completed(table, base))
        return RETRIEVALS.parse(overlay({"retrieval": set_values(base)}, {"retrieval": table})["retrieval"])
    except ValueError as error:
        raise ValueError(_one_line(error)) from None


def _one_line(error: ValueError) -> str:
    return one_line(error, "retrieval") if isinstance(error, ValidationError) else f"--retrieval: {error}"
