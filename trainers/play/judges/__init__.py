"""Judges: verdicts on turns or episodes that have been played, as a named part of the reward."""
