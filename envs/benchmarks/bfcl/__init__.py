"""BFCL's multi-turn tasks: fixed user messages, stateful interfaces, and a check after every message."""
