"""Finding out by questions what somebody thinks of."""
