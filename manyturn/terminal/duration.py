"""Durations in words."""


def duration(seconds: float) -> str:
    """A duration with the unit that fits it.

    >>> [duration(seconds) for seconds in (0.24, 42.3, 95.0, 9000.0)]
    ['0.2 s', '42 s', '1.6 min', '2.5 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
