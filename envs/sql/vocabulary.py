"""Words that generated schemas and questions are made of."""

NOUNS = (
    *("singer", "painter", "driver", "teacher", "farmer", "player", "writer", "doctor"),
    *("hotel", "museum", "garden", "bridge", "ship", "train", "robot", "camera"),
    *("book", "film", "poem", "recipe", "concert", "trip", "lesson", "letter"),
)
"""Nouns of tables; each has a regular plural."""
NUMBERS = (
    *("age", "price", "weight", "height", "score", "rating", "budget", "income"),
    *("distance", "speed", "depth", "volume", "size", "cost", "power", "width"),
)
"""Words of numeric columns."""
CATEGORIES = {
    "city": ("Rome", "Oslo", "Lima", "Cairo", "Paris", "Delhi"),
    "country": ("France", "Japan", "Peru", "Kenya", "Canada", "Spain"),
    "color": ("red", "blue", "green", "black", "white", "brown"),
    "language": ("Greek", "Latin", "Welsh", "Tamil", "Dutch", "Czech"),
    "month": ("March", "April", "May", "June", "July", "August"),
    "material": ("wood", "glass", "steel", "stone", "paper", "silk"),
    "shape": ("round", "square", "oval", "flat", "long", "narrow"),
    "status": ("new", "active", "closed", "late", "paused", "lost"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Sunday"),
    "region": ("north", "south", "east", "west", "centre", "coast"),
}
"""Word of a text column -> the values that it may have."""
FUNCTIONS = {"MAX": "highest", "MIN": "lowest", "AVG": "average", "SUM": "total"}
"""Aggregate -> its word in a question."""
_ONSETS, _VOWELS, _CODAS = ("b", "d", "f", "g", "k", "l", "m", "n", "r", "s", "t", "v"), "aeiou", ("l", "n", "r", "s")


def row_name(number: int) -> str:
    """The name of a row: numbers below 14,400 give different ones.

    >>> row_name(0), row_name(1), row_name(14_399)
    ('Babal', 'Dabal', 'Vuvus')
    """
    number, first = divmod(number, 12)
    number, vowel = divmod(number, 5)
    number, second = divmod(number, 12)
    coda, last = divmod(number, 5)
    return f"{_ONSETS[first]}{_VOWELS[vowel]}{_ONSETS[second]}{_VOWELS[last]}{_CODAS[coda]}".capitalize()
