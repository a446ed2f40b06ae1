"""The agent's workplace in an episode: its sandbox, its tools, one attempt, and the expert."""
