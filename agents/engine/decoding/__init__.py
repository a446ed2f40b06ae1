"""Drawing replies with a transformers model in this process: passes over many rows, and the memory that they share."""
