"""Reports: what was played and learned, as one page that a browser shows."""
