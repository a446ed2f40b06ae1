"""Requests to language models at endpoints, and the protocols that they speak."""
