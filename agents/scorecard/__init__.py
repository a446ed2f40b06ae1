"""Scorecard of an environment's reward: rates of policies that must not be paid, and overlap of its tasks."""
