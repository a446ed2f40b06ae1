"""Requests to language models behind OpenAI-compatible endpoints, for users and judges."""
