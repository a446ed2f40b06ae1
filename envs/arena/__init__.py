"""Games of the package textarena for one player, by the id ``textarena:NAME``."""
