"""Measurements of environments: rewards that can be had without the task, baselines, questions, attacks on tools."""
