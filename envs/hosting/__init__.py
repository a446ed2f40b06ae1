"""Seats of episodes: in this process, in worker processes, at remote hosts; with limits."""
