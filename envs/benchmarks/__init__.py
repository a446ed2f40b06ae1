"""Adapters to official benchmarks."""
