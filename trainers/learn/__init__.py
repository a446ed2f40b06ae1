"""The learner: forward passes, objectives, heads, updates."""
