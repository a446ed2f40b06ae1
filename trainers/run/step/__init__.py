"""One training step: rollouts, credit, updates."""
