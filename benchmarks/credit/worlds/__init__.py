"""Worlds that a comparison or an audit of credit is played in."""
