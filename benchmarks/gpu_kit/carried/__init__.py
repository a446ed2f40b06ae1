"""The folder that a machine without network gets next to the code: wheels, rows of Household, the CPU's numbers."""
