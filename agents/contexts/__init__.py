"""The contexts that come along, a file each."""
