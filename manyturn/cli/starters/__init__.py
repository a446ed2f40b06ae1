"""Starter environments, one of each kind: ``manyturn new-env NAME --kind KIND`` writes them."""
