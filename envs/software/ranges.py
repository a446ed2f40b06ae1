"""Ascending numbers as text: ``0-2,5,7-9``."""

from collections.abc import Iterable


def written(numbers: Iterable[int]) -> str:
    """The text of different numbers, whatever their order."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def read(text: str) -> list[int]:
    """The numbers of a text. Raises ValueError if it is none."""
    numbers: list[int] = []
    for run in text.split(",") if text else []:
        first, _, last = run.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
