"""Source code as data: pinned libraries, their files, edits, syntax trees, and a task's problem."""
