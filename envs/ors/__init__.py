"""Environments on servers of the Open Reward Standard."""
