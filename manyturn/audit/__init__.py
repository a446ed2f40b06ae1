"""Audit of credit: methods scored by how far their credit follows the true effect of each turn."""
