"""A shop that sells goods by mail."""
