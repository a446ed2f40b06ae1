"""Coroutines for callers that write no ``await``: scripts, and notebooks, in which an event loop runs already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from manyturn.terminal.command_exit import run

Result = TypeVar("Result")


def result_of(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work`` in a new event loop, in a new thread where a loop already runs, and return its result.

    Ctrl-C, or "interrupt" in a notebook, cancels the work, waits until it has closed what it opened, and raises
    KeyboardInterrupt.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    return _in_a_thread(work)


def _in_a_thread(work: Coroutine[Any, Any, Result]) -> Result:
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def cancellable() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="manyturn") as thread:
        # By the context a notebook knows the cell that what is displayed belongs to.
        ending = thread.submit(copy_context().run, asyncio.run, cancellable())
        try:
            return ending.result()
        except KeyboardInterrupt:
            for loop, task in begun:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(task.cancel)
            raise
