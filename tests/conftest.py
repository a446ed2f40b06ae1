"""Tests send signals, which a job in the background or under nohup would inherit as ignored."""

import signal


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
