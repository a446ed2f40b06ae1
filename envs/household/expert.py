"""An expert that searches: it knows the names of receptacles, which things fit where, and what it was shown so far.

Its memory is ``World.visited``: nobody else moves anything, so a receptacle once shown still holds what the agent saw
and did there. It never reads the contents of a receptacle that was not shown.
"""

from manyturn.envs.household.problem import STATIONS, Problem, bits
from manyturn.envs.household.world import World


def next_command(world: World) -> str:
    """The expert's command in this state, always an admissible one."""
    kind = world.problem.goal.kind
    if kind == "light":
        return _light(world)
    if world.held >= 0:
        if not world.problem.targets >> world.held & 1:
            return _put_away(world)
        if kind in STATIONS and not _done(world) >> world.held & 1:
            return _use_station(world, kind)
        return _put(world, _destination(world))
    targets = world.problem.targets
    destination = _destination(world)
    if kind == "two":
        targets &= ~_shown(world, destination)
    ready = targets & _done(world)
    return _fetch(world, ready) or _fetch(world, targets) or _search(world, world.problem.goal.object)


def _light(world: World) -> str:
    problem = world.problem
    if world.held >= 0 and not problem.targets >> world.held & 1:
        return _put_away(world)
    if world.held < 0:
        return _fetch(world, problem.targets) or _search(world, problem.goal.object)
    for r in _nearest_first(world):
        for lamp in bits(_shown(world, r) & problem.lamps):
            return _reach(world, r) or f"use {problem.objects[lamp]}"
    return _search(world, problem.goal.target)


# ---- what the expert knows ----------------------------------------------------------------------------------


def _shown(world: World, r: int) -> int:
    """Mask of what the expert knows to be in a receptacle."""
    return world.contents[r] if world.visited >> r & 1 else 0


def _done(world: World) -> int:
    """Mask of the objects that are in the state that the goal asks for."""
    return {"clean": world.clean, "heat": world.hot, "cool": world.cool}.get(world.problem.goal.kind, -1)


def _nearest_first(world: World) -> list[int]:
    """Receptacles, those at hand first."""
    return sorted(range(len(world.contents)), key=lambda r: world.problem.spots[r] != world.place)


def _destination(world: World) -> int:
    """The receptacle that shall hold the goal's objects: the one with most of them, else one at hand, else open."""
    problem = world.problem
    held = world.held if world.held >= 0 and problem.targets >> world.held & 1 else None

    def order(r: int) -> tuple[bool, int, bool, bool, int]:
        fits = bool(problem.fits[r] >> held & 1 if held is not None else problem.fits[r] & problem.targets)
        visible = (_shown(world, r) & problem.targets & _done(world)).bit_count()
        return not fits, -visible, problem.spots[r] != world.place, _closed(world, r), r

    return min(problem.goals, key=order)


def _closed(world: World, r: int) -> bool:
    return bool(world.problem.openable >> r & 1 and not world.opened >> r & 1)


# ---- what it does -------------------------------------------------------------------------------------------


def _reach(world: World, r: int, inside: bool = False) -> str | None:
    """The next command for standing at a receptacle, and with ``inside`` for having it open; None when that is so."""
    name = world.problem.receptacles[r]
    if world.place != world.problem.spots[r]:
        return f"go to {name}"
    return f"open {name}" if inside and _closed(world, r) else None


def _fetch(world: World, kind: int) -> str | None:
    """The next command for taking one of the wanted objects, if the expert knows where one is."""
    takeable = kind & world.problem.traits["pickupable"]
    for r in _nearest_first(world):
        for o in bits(_shown(world, r) & takeable):
            reach = _reach(world, r, inside=True)
            return reach or f"take {world.problem.objects[o]} from {world.problem.receptacles[r]}"
    return None


def _put(world: World, r: int) -> str:
    problem = world.problem
    command = world.tables.grammar.put.format(o=problem.objects[world.held], r=problem.receptacles[r])
    return _reach(world, r, inside=True) or command


def _put_away(world: World) -> str:
    """Get rid of an object that is of no use, as near as it fits."""
    fitting = [r for r in _nearest_first(world) if world.problem.fits[r] >> world.held & 1]
    return _put(world, fitting[0]) if fitting else "inventory"


def _use_station(world: World, kind: str) -> str:
    problem = world.problem
    stations = [r for r in _nearest_first(world) if problem.receptacle_types[r] == STATIONS[kind]]
    if not stations:
        return "inventory"
    command = f"{kind} {problem.objects[world.held]} with {problem.receptacles[stations[0]]}"
    return _reach(world, stations[0]) or command


def _search(world: World, thing: str) -> str:
    """The next command for seeing a receptacle not yet seen: likely and open ones first."""
    problem = world.problem
    unseen = [r for r in range(len(world.contents)) if not world.visited >> r & 1]
    if not unseen:
        return "look"
    unlikely = _unlikely(problem, thing)
    r = min(unseen, key=lambda r: (unlikely >> r & 1, problem.spots[r] != world.place, _closed(world, r), r))
    reach = _reach(world, r, inside=True)
    return reach or f"examine {problem.receptacles[r]}"


def _unlikely(problem: Problem, thing: str) -> int:
    """Mask of the receptacles to search last: those that such a thing does not fit; for lamps, those with a door."""
    if thing.endswith("lamp"):
        return problem.openable
    things = problem.of_type(thing)
    return sum(1 << r for r, fits in enumerate(problem.fits) if not fits & things)
