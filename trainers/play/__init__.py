"""Which tasks are played, and how their episodes become a batch of turns."""
