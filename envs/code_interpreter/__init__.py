"""Tasks that need computing, with an interpreter at hand."""
