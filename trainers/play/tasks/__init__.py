"""Choice of tasks: pool, draws, feedback, curricula."""
