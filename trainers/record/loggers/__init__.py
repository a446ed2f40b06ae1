"""The loggers that come along, a file each."""
