"""Desks: retail, telecom and travel, each with its rules, tables and tools."""
