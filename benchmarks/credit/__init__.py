"""Benchmarks of credit assignment: methods, ablations, anchor similarity, gates on rewards."""
