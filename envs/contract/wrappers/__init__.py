"""The reward wrappers, a file each."""
