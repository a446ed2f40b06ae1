"""Learner in one process: optimizer, updates, imitation, memory plan."""
