"""Doors with turns to spare, so that demonstrations which stray reach the goal too."""

from doors import Doors


class WideDoors(Doors):
    max_turns = 12
