"""Endpoints that speak the OpenAI chat completions protocol: address, request, patience, tools and cost."""
