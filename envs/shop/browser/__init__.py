"""A shop in a browser: its pages as HTML, and the site that serves them."""
