"""Benchmarks of software tasks and their grader."""
