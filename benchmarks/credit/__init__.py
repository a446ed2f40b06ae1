"""Benchmarks of credit assignment: methods, their claims, anchor similarity, gates on rewards."""
