"""An expert for each kind of task, which uses only what the agent was shown.

Its memory is in the world: rooms visited, lids seen open, things looked at, readings and tests. Only the agent moves
anything, so what was seen is still where it was seen or put.
"""

from collections.abc import Callable, Iterator

from manyturn.envs.adventure.exploration_expert import first_exit
from manyturn.envs.laboratory.box_goals import Conductivity, Sorting, Thermometer
from manyturn.envs.laboratory.commands import WAITS, accepts, put_command
from manyturn.envs.laboratory.goals import Change, Find, Goal, Grow, Lifespan, Mix
from manyturn.envs.laboratory.layout import CARRIED
from manyturn.envs.laboratory.substances import suits
from manyturn.envs.laboratory.world import World

Command = str | None
"""The next command; None where there is nothing left to do for an aim."""
_WAIT = next(text for text, minutes in WAITS.items() if minutes == 10)


class Unseen(Exception):
    """The agent has not been shown where something is, so it must explore."""


def next_command(world: World, goal: Goal) -> str:
    """The expert's next command."""
    try:
        command = _EXPERTS[type(goal)](world, goal)
    except Unseen:
        command = _explore(world)
    return command or _WAIT


# ---- kinds ------------------------------------------------------------------------------------------------------


def _change(world: World, goal: Change) -> Command:
    """Learn the points of the substance, choose a device that suits, and wait in front of it."""
    target = goal.target
    if command := _focus(world, target) or _look_at(world, target):
        return command
    vessel = world.holder(target)
    suited = [
        device
        for device in world.plan.of_sort("device")
        if world.looked >> device & 1 and suits(goal.aim, goal.words[0], world.plan.degrees(device))
    ]
    if world.state(target) == goal.after:
        return _WAIT
    if not suited:
        return _look_at_one(world, [d for d in world.plan.of_sort("device") if not world.looked >> d & 1])
    device = world.holder(vessel) if world.holder(vessel) in suited else _nearest(world, suited)
    return _put(world, vessel, device) or _turn_on(world, device)


def _find(world: World, goal: Find) -> Command:
    """Look at things until one is of the category; carry it to the box."""
    if world.focused:
        return _put(world, world.focused[0], goal.box)
    things = world.plan.of_sort("thing")
    for thing in things:
        if world.looked >> thing & 1 and goal.matches(world, thing) and world.sees(thing):
            return _focus(world, thing)
    return _look_at_one(world, [thing for thing in things if not world.looked >> thing & 1])


def _lifespan(world: World, goal: Lifespan) -> Command:
    """Look at things until all animals are known, then focus on them in order."""
    if all(world.looked >> thing & 1 for thing in goal.order):
        return next((_focus(world, thing) for thing in goal.order if thing not in world.focused), None)
    return _look_at_one(world, [thing for thing in world.plan.of_sort("thing") if not world.looked >> thing & 1])


def _conductivity(world: World, goal: Conductivity) -> Command:
    """Gather battery, bulb and thing in a room, connect them, and sort the thing by the light."""
    plan, target = world.plan, goal.target
    if command := _focus(world, target):
        return command
    if goal.answer(world) is not None:
        return _disconnect(world, target) or _sort(world, goal)
    (battery,), (bulb,) = plan.of_sort("battery"), plan.of_sort("bulb")
    parts = (target, battery, bulb)
    return _release(world, parts) or _gather(world, parts) or _connect(world, parts)


def _thermometer(world: World, goal: Thermometer) -> Command:
    """Carry the thermometer to the substance, measure, and sort its vessel by the reading."""
    if goal.answer(world) is None:
        target = goal.target
        return (
            _focus(world, target)
            or _bring(world, goal.meter)
            or _near(world, target)
            or f"measure {world.name(target)}"
        )
    return _focus(world, goal.target) or _sort(world, goal)


def _mix(world: World, goal: Mix) -> Command:
    """Read the recipe, pour the ingredients into one vessel, mix, and focus on the product."""
    if not world.looked >> goal.note & 1:
        return _near(world, goal.note) or f"read {world.name(goal.note)}"
    if (made := goal.made(world)) >= 0:
        return _focus(world, made)
    live = [thing for thing in goal.ingredients if world.holder(thing) >= 0]
    vessels = list(dict.fromkeys(world.holder(thing) for thing in live))
    for vessel in vessels[1:]:
        if command := _bring(world, vessel):
            return command
    if len(vessels) > 1:
        return _near(world, vessels[0]) or f"pour {world.name(vessels[1])} into {world.name(vessels[0])}"
    return _near(world, vessels[0]) or f"mix {world.name(vessels[0])}"


def _grow(world: World, goal: Grow) -> Command:
    """Plant and water a seed, or put an egg into the incubator; wait beside it."""
    target, home = goal.target, goal.home
    if world.is_grown(target):
        return _focus(world, target)
    if command := _put(world, target, home):
        return command
    if not goal.is_crop:
        return _turn_on(world, home) or _near(world, target)
    if not world.amounts[home]:
        vessel = world.holder(goal.water)
        return _bring(world, vessel) or _near(world, home) or f"pour {world.name(vessel)} into {world.name(home)}"
    return _near(world, target)


_EXPERTS: dict[type[Goal], Callable[..., Command]] = {
    Change: _change,
    Find: _find,
    Lifespan: _lifespan,
    Conductivity: _conductivity,
    Thermometer: _thermometer,
    Mix: _mix,
    Grow: _grow,
}


# ---- aims: the next command, or None when they are reached; Unseen if something must be searched for ---------------


def _focus(world: World, thing: int) -> Command:
    return None if thing in world.focused else _near(world, thing) or f"focus on {world.name(thing)}"


def _look_at(world: World, thing: int) -> Command:
    return None if world.looked >> thing & 1 else _near(world, thing) or f"look at {world.name(thing)}"


def _look_at_one(world: World, things: list[int]) -> Command:
    """Look at the nearest of the things that the agent has seen."""
    return _look_at(world, _nearest(world, things))


def _nearest(world: World, things: list[int]) -> int:
    """The thing that the agent has seen and that is in its room; else any that it has seen."""
    seen = [thing for thing in things if world.sees(thing)]
    if not seen:
        raise Unseen
    return min(seen, key=lambda thing: world.room_of(thing) not in (world.room, CARRIED))


def _near(world: World, thing: int) -> Command:
    """Have a thing in sight and within reach."""
    if not world.sees(thing):
        raise Unseen
    room = world.room_of(thing)
    if room not in (world.room, CARRIED):
        return _step_to(world, {room})
    closed, holder = "", thing
    while (holder := world.holder(holder)) >= 0:
        if world.is_closed(holder):
            closed = f"open {world.name(holder)}"
    return closed or None


def _bring(world: World, thing: int) -> Command:
    """Carry a thing."""
    return None if world.places[thing] == CARRIED else _near(world, thing) or f"take {world.name(thing)}"


def _put(world: World, thing: int, holder: int) -> Command:
    """Have a thing in or on another one."""
    if world.holder(thing) == holder:
        return None
    if command := _bring(world, thing) or _near(world, holder):
        return command
    if world.is_closed(holder):
        return f"open {world.name(holder)}"
    if not accepts(world, holder, thing):  # something else is in the pot
        return f"take {world.name(world.contents(holder)[0])}"
    return put_command(world, thing, holder)


def _turn_on(world: World, device: int) -> Command:
    """Have a device on, with its lid open so that its contents are seen."""
    if world.on >> device & 1:
        return _near(world, device) or (f"open {world.name(device)}" if world.is_closed(device) else None)
    return _near(world, device) or f"turn on {world.name(device)}"


def _sort(world: World, goal: Sorting) -> Command:
    return _put(world, goal.moved(world), goal.box(world))


def _disconnect(world: World, part: int) -> Command:
    return (_near(world, part) or f"disconnect {world.name(part)}") if world.neighbours(part) else None


def _release(world: World, parts: tuple[int, ...]) -> Command:
    """Disconnect what is connected to anything but the parts."""
    for part in parts:
        if any(other not in parts for other in world.neighbours(part)):
            return _disconnect(world, part)
    return None


def _gather(world: World, parts: tuple[int, ...]) -> Command:
    """Have the parts in reach in one room, none of them carried."""
    rooms = [world.room_of(part) for part in parts if world.sees(part) and world.places[part] != CARRIED]
    linked = [world.room_of(part) for part in parts if world.neighbours(part)]
    room = (linked or rooms or [world.room])[0]
    for part in parts:
        if world.places[part] != CARRIED and (not world.sees(part) or world.room_of(part) != room):
            return _bring(world, part)
    for part in parts:
        if world.places[part] == CARRIED:
            return _step_to(world, {room}) if world.room != room else f"drop {world.name(part)}"
    return next(filter(None, (_near(world, part) for part in parts)), None)


def _connect(world: World, parts: tuple[int, ...]) -> Command:
    for number, part in enumerate(parts):
        other = parts[number - 1]
        if other not in world.neighbours(part):
            return f"connect {world.name(other)} to {world.name(part)}"
    return _disconnect(world, parts[0])  # closed before the target was part of it: cannot be, but must not hang


def _explore(world: World) -> Command:
    """See more: open lids here, then go to the nearest room that is new or has lids never seen open."""
    plan = world.plan
    targets = {room for room in range(len(plan.rooms)) if not world.visited >> room & 1}
    for thing in range(len(plan.sorts)):
        if plan.lids >> thing & 1 and not world.shown >> thing & 1 and world.visited >> plan.places[thing] & 1:
            if plan.places[thing] == world.room:
                return f"open {plan.names[thing]}"
            targets.add(plan.places[thing])
    return _step_to(world, targets)


def _step_to(world: World, rooms: set[int]) -> Command:
    """The next command on a shortest way through visited rooms to one of the rooms; None if there is no way."""
    exits = world.plan.exits

    def seen(room: int) -> Iterator[tuple[str, int]]:
        if world.visited >> room & 1:
            yield from ((name, there) for name, (there, _) in exits[room].items())

    first = first_exit(world.room, rooms, seen)
    if first is None:
        return None
    door = exits[world.room][first][1]
    return f"go to {first}" if world.doors >> door & 1 else f"open door to {first}"
