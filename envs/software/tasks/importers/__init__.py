"""Problems of other projects, read from a file or checkout of the user's own. None of their code comes along."""

from collections.abc import Callable, Sequence
from pathlib import Path

from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.importers import exercism, humanevalfix, quixbugs
from manyturn.envs.software.tasks.importers.checkout_reader import DataError, OtherRelease

__all__ = ["IMPORTERS", "DataError", "OtherRelease", "problems"]

IMPORTERS: dict[str, Callable[[Path], Sequence[Problem]]] = {
    "humanevalfix": humanevalfix.problems_of,
    "quixbugs": quixbugs.problems_of,
    "exercism": exercism.problems_of,
}


def problems(spec: str) -> Sequence[Problem]:
    """The problems of a source, always the same ones in the same order.

    Args:
        spec: ``humanevalfix:FILE``, ``quixbugs:FOLDER`` or ``exercism:FOLDER``.

    Raises:
        DataError: the file or folder is not what it should be, or the source is unknown.
    """
    kind, colon, path = spec.partition(":")
    if kind not in IMPORTERS or not colon or not path:
        raise DataError(f"no problems {spec!r:.80}: give {', '.join(f'{name}:PATH' for name in IMPORTERS)}")
    return IMPORTERS[kind](Path(path).expanduser())
