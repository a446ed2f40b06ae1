"""Play that others learn from: scripted policies, what they say recorded as an agent's own, and advice for teachers."""
