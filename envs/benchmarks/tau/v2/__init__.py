"""The domains of tau2-bench (sierra-research/tau2-bench, Barres et al. 2025)."""
