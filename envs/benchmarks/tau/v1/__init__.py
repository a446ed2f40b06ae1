"""The domains of tau-bench (sierra-research/tau-bench, Yao et al. 2024)."""
