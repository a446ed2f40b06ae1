"""One turn decides, and what is seen next shows how."""

from manyturn.envs.pivot.one import PivotOne


class PivotSign(PivotOne):
    """Walk to the end; at one place of all the path matters, and from then on signs show whether it was right.

    Values and effects are those of ``PivotOne``: with q the probability of the right path, V is q before the place and
    1 or 0 after it. Here the state shows its value, so that an estimator has something to learn from: a critic, or
    that of SPA.

    Task:
        A row of places, and the one at which the path matters.
    Observation:
        The place, its paths, and the note of which path is right where; after the place that matters a sign, which is
        green where the path was right and black where it was wrong. ``progress`` is the share of places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 at the end if the right path was taken, and nothing else.
    End:
        After the last place, in success or failure.
    Splits:
        train, validation and test. Tasks differ in places, in the one that matters, and in its colour.
    Expert:
        Reads the note.
    Floors:
        The expert always succeeds; random admissible actions succeed in 1 of 3, 4 or 6 (easy, medium, hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (6 places, 3 paths), medium (12, 4) or hard (24, 6).
        max_turns: default: as many as there are places.
    """

    def _view(self) -> str:
        if self._good is None:
            return super()._view()
        return f"{super()._view()} The sign is {'green' if self._good else 'black'}."
