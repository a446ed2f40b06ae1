"""Hosts, samplers and ranks on Ray."""
