"""Who acts in an episode: one role, or several by name."""

ONE_ROLE = "agent"  # the role of an episode that has only one
