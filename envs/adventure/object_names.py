"""Names of rooms, furniture and things, and the small grammar that puts them into sentences."""

from collections.abc import Iterable, Sequence

DIRECTIONS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
ROOMS = (
    *("attic", "ballroom", "basement", "bathroom", "bedroom", "cellar", "chapel", "corridor", "garage", "gallery"),
    *("greenhouse", "hall", "kitchen", "laundry", "library", "lounge", "nursery", "office", "pantry", "parlour"),
    *("porch", "studio", "study", "workshop"),
)
COLOURS = (
    *("amber", "beige", "black", "blue", "brown", "cream", "crimson", "gold", "green", "grey", "indigo", "lilac"),
    *("olive", "orange", "pink", "purple", "red", "silver", "turquoise", "violet", "white", "yellow"),
)
MATERIALS = ("bamboo", "bronze", "glass", "iron", "marble", "oak", "pine", "stone", "steel", "tin", "walnut")
SUPPORTS = ("bench", "counter", "desk", "shelf", "stand", "stool", "table", "workbench")
CONTAINERS = ("box", "cabinet", "chest", "crate", "cupboard", "locker", "safe", "trunk")
THINGS = (
    *("anchor", "bell", "book", "bottle", "brooch", "candle", "coin", "compass", "crown", "cup", "dagger", "drum"),
    *("fan", "feather", "flute", "globe", "goblet", "hammer", "harp", "helmet", "jewel", "kite", "lamp", "lantern"),
    *("lens", "map", "mask", "medal", "mirror", "necklace", "painting", "pearl", "ring", "rope", "ruby", "scroll"),
    *("shield", "statue", "telescope", "vase", "violin", "whistle"),
)


def indefinite(name: str) -> str:
    """The name with its article: ``an oak table``."""
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def listing(names: Iterable[str]) -> str:
    """Names in a sentence: ``a, b and c``."""
    words: Sequence[str] = list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."
