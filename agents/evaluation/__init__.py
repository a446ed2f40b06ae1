"""Evaluation of a policy on held-out tasks: figures with intervals, comparisons, remarks."""
