"""Contract of an environment: tasks, turns, spaces, wrappers, registration, panels."""
