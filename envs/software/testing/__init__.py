"""Tests of a program, run in a sandbox: their report, expected failures, and time budget."""
