"""Set-up of a run: policies, models, placement, ranks, splits."""
