"""Notices of a run besides its metrics: one line each, printed once, kept for the summary."""

from manyturn.trainers.record.metrics import Log


class Notices:
    """Reports each text once.

    Args:
        report: receives ``{"phase": "notice", "notice": TEXT}``.

    Attributes:
        texts: the texts so far; those of a resumed run are put here.
    """

    def __init__(self, report: Log):
        self._report = report
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)
            self._report({"phase": "notice", "notice": text})
