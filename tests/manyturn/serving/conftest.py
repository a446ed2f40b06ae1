"""Servers of environments, and what environments say without any: ``served.py``."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from subprocess import Popen
from typing import Any, NamedTuple

import pytest
from served import FAULTY, UNSCORABLE, Played, file, process, serving, talk, transcript


class Tools(NamedTuple):
    """What tests of every wire use."""

    faulty: str
    unscorable: str
    transcript: Callable[..., list[Played]]
    process: Callable[..., AbstractContextManager[tuple[str, Popen[str]]]]
    serving: Callable[..., AbstractAsyncContextManager[tuple[str, Any]]]
    talk: Callable[..., Awaitable[Any]]
    file: Callable[..., Awaitable[None]]


@pytest.fixture
def tools() -> Tools:
    return Tools(FAULTY, UNSCORABLE, transcript, process, serving, talk, file)
