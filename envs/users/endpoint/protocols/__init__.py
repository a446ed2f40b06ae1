"""Protocols of endpoints, each as chat completions: the form in which everything else here writes and reads."""
