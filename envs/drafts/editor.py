"""A user who edits drafts to their preferences, and all that the edits show about these."""

from collections.abc import Mapping, Sequence

from manyturn.envs.drafts.style import DEFAULT, Style


def edit(draft: Style, preferred: Style, slots: Sequence[str], most: int) -> tuple[dict[str, str], list[str]]:
    """A draft's style after the edit of a user, and the slots that were edited.

    The user reads from left to right and stops after some corrections.

    Args:
        slots: in reading order.
        most: corrections.
    """
    edited = [slot for slot in slots if draft[slot] != preferred[slot]][:most]
    return {**draft, **{slot: preferred[slot] for slot in edited}}, edited


class Evidence:
    """Preferences of one group of recipients, as far as edits show them.

    A corrected slot shows the preference. A slot that the user read and left is right too: all slots before the last
    correction, or all slots if the user made fewer corrections than they would.

    Args:
        slots: in reading order.
        most: corrections that the user makes in one draft.
    """

    def __init__(self, slots: Sequence[str], most: int):
        self._slots, self._most = slots, most
        self.shown: dict[str, str] = {}

    def read(self, version: Style, edited: Sequence[str]) -> None:
        """Take in the user's version of a draft."""
        stopped = len(edited) == self._most
        last = self._slots.index(edited[-1]) if stopped else len(self._slots) - 1
        self.shown |= {slot: version[slot] for slot in self._slots[: last + 1]}

    def best(self) -> dict[str, str]:
        """The style to write in: what was shown, and the default elsewhere."""
        return {**DEFAULT, **self.shown}

    def load(self, shown: Mapping[str, str]) -> None:
        self.shown = dict(shown)
