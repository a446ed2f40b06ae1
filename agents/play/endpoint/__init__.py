"""Policies at endpoints: address, request, patience, tools and cost."""
