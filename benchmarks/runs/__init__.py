"""Benchmarks of training runs and evaluations: success, costs, suites, floors, intervals."""
