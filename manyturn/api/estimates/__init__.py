"""Estimates of time and memory before a run, and while it goes on."""
