"""The reply formats that come along, a file each."""
