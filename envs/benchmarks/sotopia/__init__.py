"""Sotopia (Zhou et al. 2024, arXiv 2310.11667): two characters with private goals in a social situation."""
