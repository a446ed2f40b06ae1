"""Servers and hosts measured: turns by protocol, and what hostile messages do to them."""
