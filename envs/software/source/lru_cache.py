"""A memory of what is costly to make again, which forgets what was longest not asked for; for any number of threads."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class RecencyCache(Generic[T]):
    """Key -> value, for so many keys.

    >>> squares = RecencyCache[int](2)
    >>> [squares.made(key, lambda: len(key)) for key in ("a", "bb", "a", "ccc")], squares.keys
    ([1, 2, 1, 3], ['a', 'ccc'])
    """

    def __init__(self, most: int):
        self._most, self._lock = most, Lock()
        self._values: OrderedDict[str, T] = OrderedDict()

    @property
    def keys(self) -> list[str]:
        return list(self._values)

    def made(self, key: str, make: Callable[[], T], keep: Callable[[T], bool] = lambda value: True) -> T:
        """The value of a key, made if it is not known; one that shall not be kept is made again each time."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()  # not locked: another key need not wait, and two threads make the same
        if keep(value):
            with self._lock:
                self._values[key] = value
                if len(self._values) > self._most:
                    self._values.popitem(last=False)
        return value
