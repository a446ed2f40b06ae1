"""Several processes that learn as one: each has a share of the weights and makes a share of the passes."""
