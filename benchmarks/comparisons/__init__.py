"""Benchmarks of whole runs that differ in one thing: starts, contexts, mixtures of environments."""
