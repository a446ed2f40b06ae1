"""Methods of improvement: each file turns attempts into entries of an experience."""
