"""Where episodes run: seats, worker processes, limits."""
