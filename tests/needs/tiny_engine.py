"""What tests of the transformers engine begin with: an engine, an episode's key, and an end to waiting."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.tokens.episode_key import EpisodeKey

_T = TypeVar("_T")


def make_engine(language: LanguageModel, **kwargs: Any) -> TransformersEngine:
    return TransformersEngine(language.model, language.template.end_ids, **kwargs)


def key(member: int) -> EpisodeKey:
    return EpisodeKey(0, "test", "a task", member)


def within(seconds: float, coroutine: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(asyncio.wait_for(coroutine, seconds))
