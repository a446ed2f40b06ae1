"""TextWorld: games that the official generator makes, played in the official interpreter."""
