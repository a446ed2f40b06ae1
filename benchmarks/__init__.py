"""Benchmarks: scripts that make every figure of README and pages, and the results that they made."""
