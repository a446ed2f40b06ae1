"""Each token once: rows of tokens as a tree of their common prefixes, and a forward pass over its nodes."""
