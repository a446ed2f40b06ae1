"""The reply formats that come with manyturn, one file each."""
