"""Credit for turns, in numpy alone: the batch, the stages and their registry."""
