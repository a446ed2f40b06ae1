"""Objective: the loss of a token, aggregation, and regularisers."""
