"""The running run: the loop, a step of it, and what it is put together from."""
