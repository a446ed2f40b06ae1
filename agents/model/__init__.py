"""Language models: configuration, loading, weights on disk."""
