"""Search of a house by an expert that uses only what the agent was shown.

Its memory is in the world: rooms visited and furniture seen open. Only the agent moves anything, so what was seen is
still where it was seen or put.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from manyturn.envs.adventure.house import CARRIED
from manyturn.envs.adventure.world import World


def fetch(world: World, thing: int) -> str | None:
    """The next command for carrying a thing; None if it is carried, or the agent does not know where it is."""
    house, place = world.house, world.places[thing]
    if place == CARRIED or not world.sees(thing):
        return None
    where = f" from {house.furniture[place - len(house.rooms)]}" if place >= len(house.rooms) else ""
    return use(world, place, f"take {house.things[thing]}{where}")


def use(world: World, place: int, command: str) -> str | None:
    """A command that needs an open place at hand, or the next one for having it so; None if it cannot be."""
    room, lid = world.house.room_of(place), world.house.lid_of(place)
    if lid >= 0 and not _can_open(world, lid):
        return None
    if world.room != room:
        return _step_to(world, {room})
    return _open(world, lid) or command


def explore(world: World) -> str | None:
    """The next command for seeing more: keys first, then lids and rooms, the nearest first; None if all is seen."""
    house = world.house
    for thing, name in enumerate(house.things):
        if name.endswith(" key") and (command := fetch(world, thing)):
            return command
    targets: set[int] = set()
    for room in range(len(house.rooms)):
        if not world.visited >> room & 1:
            targets.add(room)
            continue
        for piece in house.here[room]:
            lid = house.lids[piece]
            if lid >= 0 and not world.shown >> piece & 1 and _can_open(world, lid):
                if room == world.room:
                    return _open(world, lid)
                targets.add(room)
    return _step_to(world, targets)


def _can_open(world: World, barrier: int) -> bool:
    """True if a barrier is not locked, or its key is carried."""
    key = world.house.keys[barrier]
    return not world.locked >> barrier & 1 or (key >= 0 and world.places[key] == CARRIED)


def _open(world: World, barrier: int) -> str | None:
    """The next command for opening a barrier; None when it is open or there is none."""
    if barrier < 0 or world.opened >> barrier & 1:
        return None
    name = world.house.barriers[barrier]
    if world.locked >> barrier & 1:
        return f"unlock {name} with {world.house.things[world.house.keys[barrier]]}"
    return f"open {name}"


def _step_to(world: World, rooms: set[int]) -> str | None:
    """The next command on a shortest way through visited rooms to one of the rooms; None if there is no way."""
    exits = world.house.exits

    def passable(room: int) -> Iterator[tuple[str, int]]:
        if world.visited >> room & 1:
            yield from ((way, there) for way, (there, lid) in exits[room].items() if lid < 0 or _can_open(world, lid))

    first = first_exit(world.room, rooms, passable)
    return first and (_open(world, exits[world.room][first][1]) or f"go {first}")


def first_exit(room: int, targets: set[int], exits: Callable[[int], Iterable[tuple[str, int]]]) -> str | None:
    """The first exit on a shortest way from a room to one of others; None if there is no way, or it is one of them.

    Args:
        exits: of a room each exit's name, and the room that it leads to.
    """
    queue: deque[tuple[int, str]] = deque([(room, "")])
    queued = {room}
    while queue:
        here, first = queue.popleft()
        if here in targets:
            return first or None
        for name, there in exits(here):
            if there not in queued:
                queued.add(there)
                queue.append((there, first or name))
    return None
