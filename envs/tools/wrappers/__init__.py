"""Wrappers between an agent and its tools: what attacks, limits or disturbs them."""
