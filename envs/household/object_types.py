"""Types of a household's objects: receptacles of each room, movable objects, their places and uses.

Type names are AI2-THOR's, in lower case, so that what is learnt here reads like ALFWorld; the tables are our own and
follow common sense.
"""

from functools import cache

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})

# room -> receptacle type -> (fewest, most) in a full room. A room has all types whose fewest is above 0.
ROOMS: dict[str, dict[str, tuple[int, int]]] = {
    "kitchen": {
        "countertop": (1, 3),
        "sinkbasin": (1, 1),
        "fridge": (1, 1),
        "microwave": (1, 1),
        "cabinet": (1, 8),
        "drawer": (0, 5),
        "stoveburner": (0, 4),
        "coffeemachine": (0, 1),
        "toaster": (0, 1),
        "garbagecan": (0, 1),
        "diningtable": (0, 2),
        "sidetable": (0, 1),
        "shelf": (0, 3),
    },
    "bathroom": {
        "countertop": (1, 2),
        "sinkbasin": (1, 2),
        "toilet": (1, 1),
        "cabinet": (0, 5),
        "drawer": (0, 4),
        "bathtubbasin": (0, 1),
        "garbagecan": (0, 1),
        "handtowelholder": (0, 2),
        "towelholder": (0, 2),
        "toiletpaperhanger": (0, 1),
        "shelf": (0, 3),
        "cart": (0, 1),
        "sidetable": (0, 1),
        "laundryhamper": (0, 1),
    },
    "bedroom": {
        "bed": (1, 1),
        "desk": (1, 2),
        "sidetable": (1, 2),
        "drawer": (0, 7),
        "dresser": (0, 1),
        "shelf": (0, 5),
        "garbagecan": (0, 1),
        "laundryhamper": (0, 1),
        "safe": (0, 1),
        "armchair": (0, 1),
        "cabinet": (0, 2),
        "ottoman": (0, 1),
    },
    "livingroom": {
        "sofa": (1, 1),
        "coffeetable": (1, 1),
        "sidetable": (1, 3),
        "armchair": (0, 2),
        "tvstand": (0, 1),
        "diningtable": (0, 1),
        "desk": (0, 1),
        "dresser": (0, 1),
        "drawer": (0, 6),
        "cabinet": (0, 4),
        "shelf": (0, 4),
        "garbagecan": (0, 1),
        "safe": (0, 1),
        "ottoman": (0, 1),
        "cart": (0, 1),
    },
}

_FURNITURE = "diningtable coffeetable sidetable desk dresser tvstand shelf"
_FOOD = "fridge microwave diningtable countertop sinkbasin garbagecan sidetable"
_DISH = "cabinet drawer diningtable countertop sinkbasin coffeetable sidetable shelf"
_TOOL = "drawer diningtable countertop sinkbasin sidetable"
_PAN = "stoveburner cabinet diningtable countertop sinkbasin fridge"
_BATH = "countertop cabinet drawer shelf cart sidetable bathtubbasin sinkbasin garbagecan"
_DESK = f"{_FURNITURE} drawer bed sofa armchair ottoman"
_SMALL = f"{_FURNITURE} drawer safe sofa armchair ottoman cabinet"

# object -> (rooms, what can be done: c clean, h heat, k cool, s slice; v is a vessel; where it fits)
_OBJECTS: dict[str, tuple[str, str, str]] = {
    "apple": ("kitchen", "chks", _FOOD),
    "bread": ("kitchen", "hks", _FOOD),
    "egg": ("kitchen", "chk", _FOOD),
    "lettuce": ("kitchen", "cks", "fridge diningtable countertop sinkbasin garbagecan sidetable"),
    "potato": ("kitchen", "chks", _FOOD),
    "tomato": ("kitchen", "chks", _FOOD),
    "bowl": ("kitchen livingroom", "ckv", f"{_DISH} fridge microwave"),
    "cup": ("kitchen", "chkv", f"{_DISH} fridge microwave"),
    "mug": ("kitchen bedroom", "chkv", f"{_DISH} fridge microwave coffeemachine desk"),
    "plate": ("kitchen livingroom", "chkv", f"{_DISH} fridge microwave"),
    "pan": ("kitchen", "ckv", _PAN),
    "pot": ("kitchen", "ckv", _PAN),
    "kettle": ("kitchen", "c", "stoveburner cabinet diningtable countertop sinkbasin shelf"),
    "winebottle": ("kitchen", "k", "fridge cabinet diningtable countertop shelf garbagecan"),
    "glassbottle": ("kitchen", "k", "fridge cabinet diningtable countertop shelf garbagecan"),
    "butterknife": ("kitchen", "c", _TOOL),
    "fork": ("kitchen", "c", _TOOL),
    "knife": ("kitchen", "c", _TOOL),
    "spoon": ("kitchen", "c", _TOOL),
    "ladle": ("kitchen", "c", f"{_TOOL} cabinet"),
    "spatula": ("kitchen", "c", _TOOL),
    "dishsponge": ("kitchen", "c", f"{_TOOL} cabinet garbagecan shelf"),
    "peppershaker": ("kitchen", "", "cabinet drawer diningtable countertop shelf sidetable"),
    "saltshaker": ("kitchen", "", "cabinet drawer diningtable countertop shelf sidetable"),
    "papertowelroll": ("kitchen", "", "cabinet diningtable countertop shelf garbagecan"),
    "candle": ("bathroom livingroom", "", f"{_FURNITURE} countertop toilet cabinet drawer cart bathtubbasin"),
    "cloth": ("bathroom", "c", f"{_BATH} laundryhamper"),
    "handtowel": ("bathroom", "", "handtowelholder countertop cabinet sidetable shelf bathtubbasin"),
    "towel": ("bathroom", "", "towelholder countertop bathtubbasin shelf laundryhamper"),
    "soapbar": ("bathroom", "c", f"{_BATH} toilet"),
    "soapbottle": ("bathroom kitchen", "", f"{_BATH} toilet"),
    "spraybottle": ("bathroom", "", f"{_BATH} toilet"),
    "toiletpaper": ("bathroom", "", f"toiletpaperhanger toilet {_BATH}"),
    "plunger": ("bathroom", "", "cabinet cart shelf bathtubbasin"),
    "scrubbrush": ("bathroom", "", "cabinet cart shelf countertop toilet"),
    "tissuebox": ("bathroom bedroom livingroom", "", f"{_FURNITURE} countertop toilet cabinet drawer cart"),
    "alarmclock": ("bedroom", "", "desk sidetable dresser shelf bed"),
    "baseballbat": ("bedroom", "", "bed sofa desk dresser"),
    "basketball": ("bedroom", "", "bed sofa armchair desk dresser ottoman"),
    "book": ("bedroom livingroom", "", f"{_DESK} cabinet"),
    "box": ("livingroom bedroom", "v", "diningtable coffeetable sidetable desk dresser sofa armchair ottoman shelf"),
    "cd": ("bedroom", "", f"{_FURNITURE} drawer safe bed garbagecan"),
    "cellphone": ("bedroom livingroom", "", f"{_SMALL} bed"),
    "creditcard": ("bedroom livingroom", "", _SMALL),
    "keychain": ("bedroom livingroom", "", _SMALL),
    "laptop": ("bedroom livingroom", "", "diningtable coffeetable sidetable desk dresser sofa armchair bed ottoman"),
    "newspaper": ("livingroom", "", f"{_DESK} garbagecan"),
    "pen": ("bedroom livingroom", "", f"{_FURNITURE} drawer garbagecan bed"),
    "pencil": ("bedroom livingroom", "", f"{_FURNITURE} drawer garbagecan bed"),
    "pillow": ("bedroom livingroom", "", "bed sofa armchair ottoman"),
    "remotecontrol": ("livingroom", "", _SMALL),
    "statue": ("livingroom", "", f"{_FURNITURE} cart safe"),
    "teddybear": ("bedroom", "", "bed sofa armchair desk dresser laundryhamper ottoman"),
    "tennisracket": ("bedroom", "", "bed desk dresser sofa"),
    "vase": ("livingroom", "v", f"{_FURNITURE} cart safe"),
    "watch": ("livingroom bedroom", "", _SMALL),
    "wateringcan": ("livingroom", "v", "diningtable coffeetable sidetable desk dresser shelf"),
}

LAMPS: dict[str, tuple[str, ...]] = {
    "desklamp": ("desk", "sidetable", "dresser", "shelf"),
    "floorlamp": ("sidetable", "coffeetable", "desk", "dresser"),
}

_TRAITS = {"c": "cleanable", "h": "heatable", "k": "coolable", "s": "sliceable", "v": "vessel"}
FITS: dict[str, frozenset[str]] = {name: frozenset(fits.split()) for name, (_, _, fits) in _OBJECTS.items()}
TRAITS: dict[str, frozenset[str]] = {
    name: frozenset(_TRAITS[letter] for letter in letters) for name, (_, letters, _) in _OBJECTS.items()
}


@cache
def objects_of(room: str) -> tuple[str, ...]:
    """Types of the objects that are found in a room."""
    return tuple(name for name, (rooms, _, _) in _OBJECTS.items() if room in rooms.split())


@cache
def goal_pairs(room: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Object and target types that make sense as a goal of this kind in a room, whichever receptacles it has."""
    names = objects_of(room)
    if kind == "light":
        return tuple((o, lamp) for o in names for lamp in LAMPS)
    trait, station = {
        "clean": ("cleanable", "sinkbasin"),
        "heat": ("heatable", "microwave"),
        "cool": ("coolable", "fridge"),
    }.get(kind, (None, None))
    return tuple(
        (o, r)
        for o in names
        if trait is None or trait in TRAITS[o]
        for r in ROOMS[room]
        if r in FITS[o] and r != station
    )
