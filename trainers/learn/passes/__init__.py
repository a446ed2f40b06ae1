"""Forward and backward passes: samples, packing, budget of tokens."""
