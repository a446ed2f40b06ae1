"""Shared parts of benchmarks: provenance, processes, cells of comparisons, rollouts, tables."""
