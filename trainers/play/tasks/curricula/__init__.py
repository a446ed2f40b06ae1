"""Which tasks a step plays: functions from a pool of tasks to numbers of tasks, one per file."""
