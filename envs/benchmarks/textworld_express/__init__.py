"""TextWorld-Express: eight small text games in the authors' own engine, which runs in Java."""
