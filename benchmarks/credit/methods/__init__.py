"""Credit methods compared with everything else equal; ``hypotheses.toml`` is older than the results."""
