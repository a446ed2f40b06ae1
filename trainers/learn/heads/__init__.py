"""Heads beside the policy: critic and progress estimator."""
