"""Seats for episodes in this process and in supervised worker processes of this machine."""
