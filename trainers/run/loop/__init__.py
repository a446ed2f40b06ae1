"""Training loop: steps, checkpoints, held-out evaluation, warnings."""
