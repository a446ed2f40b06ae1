"""Values of search: each file says how good the place is to which a reply has led."""
