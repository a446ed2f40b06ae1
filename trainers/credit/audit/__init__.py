"""Audit of credit: how far the credit of a method follows the true effect of each turn, in numpy only."""
