"""Options of configurations, and the registry of the parts that configurations name."""
