"""Roles of an episode: one, or several by name, and the reward parts that belong to them.

``ROLE.PART`` belongs to that role, whichever turn earned it; any other part belongs to all. In metrics a part's name
stands after ``PARTS``.
"""

from collections.abc import Collection, Iterable

ONE_ROLE = "agent"  # the role of an episode that has only one
PARTS = "parts/"


def owner_of(part: str, roles: Collection[str]) -> tuple[str | None, str]:
    """Owner of the part, None if it belongs to all, and its name for the owner.

    >>> roles = ["buyer", "seller"]
    >>> owner_of("buyer.outcome", roles), owner_of("patience", roles), owner_of("buyer.outcome", ["agent"])
    (('buyer', 'outcome'), (None, 'patience'), (None, 'buyer.outcome'))
    """
    role, dot, name = part.partition(".")
    return (role, name) if dot and len(roles) > 1 and role in roles else (None, part)


def own_parts(names: Iterable[str], roles: Collection[str]) -> tuple[str, ...]:
    """Reward parts as the roles themselves know them, each once.

    >>> own_parts(["buyer.outcome", "seller.outcome", "patience"], ["buyer", "seller"])
    ('outcome', 'patience')
    """
    return tuple(dict.fromkeys(owner_of(name, roles)[1] for name in names))
