"""The loggers that come with manyturn, one file each."""
