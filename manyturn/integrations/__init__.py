"""Credit inside trainers of others: a module for each, which imports its trainer. ``import manyturn`` imports none."""
