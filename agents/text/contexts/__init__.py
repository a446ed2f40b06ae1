"""The contexts that come with manyturn, one file each."""
