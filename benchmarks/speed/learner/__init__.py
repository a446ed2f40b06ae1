"""Benchmarks of the learner on a CPU: seconds and memory of an update."""
