"""Choice of the tasks that are played, and the way from their episodes to a batch of turns."""
