"""What an environment is: tasks, turns, spaces, wrappers, registration, panels."""
