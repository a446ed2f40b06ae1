"""Roles of an episode: one, or several by name."""

ONE_ROLE = "agent"  # the role of an episode that has only one
