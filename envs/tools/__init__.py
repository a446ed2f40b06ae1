"""Tools that an agent calls: typed Python functions, and the text of calls."""
