"""What a run leaves on disk: its folder, checkpoints, metrics and summary."""
