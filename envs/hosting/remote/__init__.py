"""Seats for episodes at hosts: processes on other machines, started by hand or placed by Ray."""
