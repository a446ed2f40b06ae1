"""Products of a shop, the goals of its customers, and prices."""
