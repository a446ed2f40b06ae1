"""Dialogues with simulated users by rules: booking, bargaining, guessing, support and tutoring."""
