"""AppWorld: tasks that are done by writing code against the interfaces of nine simulated apps."""
