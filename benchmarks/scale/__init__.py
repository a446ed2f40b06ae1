"""Benchmarks of scale: open episodes, hosts, orders of training, predicted durations."""
