"""Comparison groups: statistics, anchors, levels of turns."""
