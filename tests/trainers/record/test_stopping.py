"""A run that is asked to stop ends in time, and unfinished work is cancelled."""

import asyncio
import os
import signal
import threading

import pytest

from manyturn.trainers.record.stop_signal import Stopped, Stopping

pytestmark = pytest.mark.versions


def _stopped(work, drain):
    async def main():
        with Stopping(drain) as stopping:
            return await stopping.run(work()), stopping.stop_signal

    return asyncio.run(main())


@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_work_that_ends_in_time_is_kept(order):
    async def work():
        os.kill(os.getpid(), order)
        await asyncio.sleep(0.2)
        return "done"

    assert _stopped(work, 60.0) == ("done", order)


@pytest.mark.parametrize(("order", "status"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_work_that_takes_too_long_is_cancelled(order, status):
    cancelled = []

    async def work():
        try:
            os.kill(os.getpid(), order)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(Stopped) as stopped:
        _stopped(work, 0.1)
    assert cancelled and stopped.value.exit_code == status


def test_an_error_of_the_work_is_its_own():
    async def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _stopped(work, 1.0)


def test_the_second_signal_ends_work_that_does_not_listen():
    """While weights are updated the event loop does not run."""

    async def main():
        with Stopping() as stopping:
            await stopping.run(_busy(stopping))

    async def _busy(stopping):
        os.kill(os.getpid(), signal.SIGINT)
        while stopping.stop_signal is None:
            pass
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_signal_that_is_ignored_stays_ignored():
    """As nohup wants it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def main():
            with Stopping() as stopping:
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0.05)
                return stopping.stop_signal

        assert asyncio.run(main()) is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_usual_handlers_come_back():
    before = [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)]

    async def main():
        with Stopping():
            pass

    asyncio.run(main())
    assert [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_handler_of_the_program_around_hears_every_signal_afterwards():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:

        async def main():
            with Stopping():
                pass

        asyncio.run(main())
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert len(heard) == 3
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_thread_can_train_although_it_hears_no_signals():
    found = []

    async def work():
        return 5

    async def main():
        with Stopping() as stopping:
            found.append(await stopping.run(work()))

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
    assert found == [5]
