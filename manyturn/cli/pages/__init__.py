"""Generated reference: environment cards, options, methods."""
