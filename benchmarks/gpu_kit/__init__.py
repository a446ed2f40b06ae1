"""Measurements of one GPU: whether it is right, how fast it is, what it takes; see docs/gpu.md."""
