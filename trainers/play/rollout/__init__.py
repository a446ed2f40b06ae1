"""Rollouts: groups, branching, refill, turn limit."""
