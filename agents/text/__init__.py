"""Text around a model: chat template, contexts, reply formats, choices."""
