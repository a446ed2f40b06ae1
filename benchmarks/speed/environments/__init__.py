"""Benchmarks of environments on one core: reset, step, snapshot, memory."""
