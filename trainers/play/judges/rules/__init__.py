"""Rules of a scripted judge, one a file."""
