"""Choice of a step's tasks: functions from a pool of tasks to numbers of tasks, one per file."""
