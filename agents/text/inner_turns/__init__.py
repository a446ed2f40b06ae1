"""Kinds of inner turns."""
