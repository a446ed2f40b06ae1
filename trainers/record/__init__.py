"""Files of a run: its folder, checkpoints, metrics and summary."""
