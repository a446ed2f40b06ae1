"""Pages of a shop as data and as text, and the session that moves between them."""
