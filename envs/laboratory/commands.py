"""Commands that exist in a situation, and what they do and answer."""

from manyturn.envs.adventure.object_names import indefinite, listing
from manyturn.envs.laboratory.layout import CARRIED, DEVICES, FIXED, GONE, PARTS, SITUATIONS, Operation
from manyturn.envs.laboratory.object_types import ANIMALS, WATERED, category_of
from manyturn.envs.laboratory.substances import PRODUCTS, SUBSTANCES
from manyturn.envs.laboratory.world import World

WAITS = {"wait one minute": 1, "wait ten minutes": 10}
Offers = dict[str, Operation]


def operation_of(world: World, command: str) -> Operation | None:
    """The operation of a command; None if the command does not exist here."""
    return commands(world)[0].get(command.strip())


def perform(world: World, operation: Operation) -> str:
    """Take one command: the answer. A minute passes, or those waited for."""
    act, first, second = operation
    text = act(world, first, second)
    events = world.pass_time(first if act is _wait else 1)
    return " ".join([text, *events]) if events else text


def refusal(world: World, command: str) -> str:
    """The answer to a command that does not exist here; it says why, where a closed door is the reason."""
    name = command.strip().removeprefix("go to ")
    if name != command.strip() and name in world.plan.exits[world.room]:
        return f"The door to the {name} is closed."
    return "You cannot do that."


def commands(world: World) -> tuple[Offers, list[str]]:
    """Commands that exist here: command -> operation, and the sorted list, which is not to be changed."""
    key = world.key()
    entry = world.plan.commands.get(key)
    if entry is None:
        offers: Offers = {"look": (_look, 0, 0), "inventory": (_inventory, 0, 0)}
        offers |= {text: (_wait, minutes, 0) for text, minutes in WAITS.items()}
        _offer_doors(world, offers)
        visible = world.visible()
        for thing in visible:
            _offer_thing(world, thing, offers)
        for offer in (_offer_places, _offer_vessels, _offer_measurements, _offer_circuits):
            offer(world, visible, offers)
        if len(world.plan.commands) >= SITUATIONS:
            world.plan.commands.clear()
        entry = world.plan.commands[key] = offers, sorted(offers)
    return entry


def focus_of(world: World, operation: Operation) -> int:
    """The thing that an operation focuses on for the first time; -1 for other operations."""
    return operation[1] if operation[0] is _focus and operation[1] not in world.focused else -1


def accepts(world: World, holder: int, thing: int) -> bool:
    """True if a thing can be put in or on another one, which is open."""
    sort = world.plan.sorts[thing]
    match world.plan.sorts[holder]:
        case "surface" | "box" | "cabinet":
            return not world.is_closed(holder)
        case "pot":
            return sort == "growing" and not world.contents(holder)
        case "device":
            is_incubator = world.plan.names[holder] == "incubator"
            return not world.is_closed(holder) and sort == ("growing" if is_incubator else "vessel")
        case _:
            return False


def put_command(world: World, thing: int, holder: int) -> str:
    """The command that puts a carried thing in or on another one."""
    return f"put {world.name(thing)} {preposition(world, holder)} {world.name(holder)}"


def preposition(world: World, holder: int) -> str:
    """``on`` for what has a top, ``in`` for what has an inside."""
    sort = world.plan.sorts[holder]
    return "on" if sort == "surface" or (sort == "device" and not world.plan.lids >> holder & 1) else "in"


# ---- commands that exist here -----------------------------------------------------------------------------------


def _offer_doors(world: World, into: Offers) -> None:
    for name, (room, door) in world.plan.exits[world.room].items():
        if world.doors >> door & 1:
            into[f"go to {name}"] = (_go, room, 0)
            into[f"close door to {name}"] = (_close_door, room, door)
        else:
            into[f"open door to {name}"] = (_open_door, room, door)


def _offer_thing(world: World, thing: int, into: Offers) -> None:
    """Commands about one thing."""
    plan, name = world.plan, world.name(thing)
    bit, sort = 1 << thing, plan.sorts[thing]
    if sort not in FIXED:
        into[f"focus on {name}"] = (_focus, thing, 0)
    if sort != "surface":
        into[f"look at {name}"] = (_look_at, thing, 0)
    if plan.lids & bit:
        verb, operation = ("close", _close) if world.opened & bit else ("open", _open)
        into[f"{verb} {name}"] = (operation, thing, 0)
    if sort == "device":
        verb = "turn off" if world.on & bit else "turn on"
        into[f"{verb} {name}"] = (_switch, thing, 0)
    if sort == "note":
        into[f"read {name}"] = (_read, thing, 0)
    if sort not in (*FIXED, "substance") and world.places[thing] != CARRIED and not world.neighbours(thing):
        into[f"take {name}"] = (_take, thing, 0)


def _offer_places(world: World, visible: list[int], into: Offers) -> None:
    """Commands that put down what is carried."""
    holders = [thing for thing in visible if world.plan.sorts[thing] in FIXED]
    for thing in visible:
        if world.places[thing] == CARRIED:
            into[f"drop {world.name(thing)}"] = (_drop, thing, 0)
            for holder in holders:
                if accepts(world, holder, thing):
                    into[put_command(world, thing, holder)] = (_put, thing, holder)


def _offer_vessels(world: World, visible: list[int], into: Offers) -> None:
    """Commands that pour and mix."""
    plan = world.plan
    vessels = [thing for thing in visible if plan.sorts[thing] == "vessel"]
    pots = [thing for thing in visible if plan.sorts[thing] == "pot"]
    for vessel in vessels:
        name, contents = plan.names[vessel], world.contents(vessel)
        if len(contents) > 1:
            into[f"mix {name}"] = (_mix, vessel, 0)
        if not contents or world.places[vessel] != CARRIED:
            continue
        for other in vessels:
            if other != vessel:
                into[f"pour {name} into {plan.names[other]}"] = (_pour, vessel, other)
        if all(world.ingredients(thing) == ("water",) for thing in contents):
            for pot in pots:
                into[f"pour {name} into {plan.names[pot]}"] = (_water, vessel, pot)


def _offer_measurements(world: World, visible: list[int], into: Offers) -> None:
    """Commands of a carried thermometer."""
    if any(world.plan.sorts[thing] == "thermometer" and world.places[thing] == CARRIED for thing in visible):
        for thing in visible:
            if world.plan.sorts[thing] == "substance":
                into[f"measure {world.name(thing)}"] = (_measure, thing, 0)


def _offer_circuits(world: World, visible: list[int], into: Offers) -> None:
    """Commands that connect and disconnect parts, which have two ends each."""
    names = world.plan.names
    parts = [thing for thing in visible if world.plan.sorts[thing] in PARTS and world.places[thing] != CARRIED]
    free = [part for part in parts if len(world.neighbours(part)) < 2]
    for a in parts:
        if world.neighbours(a):
            into[f"disconnect {names[a]}"] = (_disconnect, a, 0)
    for a in free:
        for b in free:
            if b != a and b not in world.neighbours(a):
                into[f"connect {names[a]} to {names[b]}"] = (_connect, a, b)


# ---- operations: change the state and answer --------------------------------------------------------------------


def _look(world: World, _: int, __: int) -> str:
    return world.describe()


def _inventory(world: World, _: int, __: int) -> str:
    things = [world.noun(thing) for thing, place in enumerate(world.places) if place == CARRIED]
    return f"You carry {listing(things) if things else 'nothing'}."


def _wait(world: World, minutes: int, _: int) -> str:
    return "One minute passes." if minutes == 1 else "Ten minutes pass."


def _go(world: World, room: int, _: int) -> str:
    world.room = room
    world.notice()
    return world.describe()


def _open_door(world: World, room: int, door: int) -> str:
    world.doors |= 1 << door
    return f"You open the door to the {world.plan.rooms[room]}."


def _close_door(world: World, room: int, door: int) -> str:
    world.doors &= ~(1 << door)
    return f"You close the door to the {world.plan.rooms[room]}."


def _open(world: World, thing: int, _: int) -> str:
    world.opened |= 1 << thing
    world.notice()
    things = [world.noun(other) for other in world.contents(thing)]
    return f"You open the {world.name(thing)}. There is {listing(things) if things else 'nothing'} in it."


def _close(world: World, thing: int, _: int) -> str:
    world.opened &= ~(1 << thing)
    return f"You close the {world.name(thing)}."


def _switch(world: World, thing: int, _: int) -> str:
    world.on ^= 1 << thing
    return f"You turn {'on' if world.on >> thing & 1 else 'off'} the {world.name(thing)}."


def _take(world: World, thing: int, _: int) -> str:
    world.places[thing] = CARRIED
    return f"You take the {world.name(thing)}."


def _drop(world: World, thing: int, _: int) -> str:
    world.places[thing] = world.room
    return f"You put the {world.name(thing)} on the floor."


def _put(world: World, thing: int, holder: int) -> str:
    world.places[thing] = world.plan.inside(holder)
    return f"You put the {world.name(thing)} {preposition(world, holder)} the {world.name(holder)}."


def _pour(world: World, vessel: int, other: int) -> str:
    things = world.contents(vessel)
    for thing in things:
        world.places[thing] = world.plan.inside(other)
    return f"You pour the {listing(map(world.name, things))} into the {world.name(other)}."


def _water(world: World, vessel: int, pot: int) -> str:
    for thing in world.contents(vessel):
        world.places[thing] = GONE
        world.amounts[pot] += WATERED
    return f"You pour the water into the {world.name(pot)}. The soil is wet now."


def _mix(world: World, vessel: int, _: int) -> str:
    first, *others = world.contents(vessel)
    names = listing(world.name(thing) for thing in (first, *others))
    ingredients = {name for thing in (first, *others) for name in world.ingredients(thing)}
    world.blend(first, tuple(sorted(ingredients)))
    for thing in others:
        world.places[thing] = GONE
        world.blends.pop(thing, None)
    name = world.name(first)
    return f"You mix the {names}. You get {indefinite(name) if name.startswith('mixture of') else name}."


def _measure(world: World, thing: int, _: int) -> str:
    world.readings[thing] = world.amounts[thing]
    return f"The thermometer reads {world.amounts[thing]} degrees."


def _connect(world: World, a: int, b: int) -> str:
    world.links = tuple(sorted((*world.links, (min(a, b), max(a, b)))))
    text = f"You connect the {world.name(a)} to the {world.name(b)}."
    loop = world.circuit(a)
    bulbs = [part for part in loop if world.plan.sorts[part] == "bulb"]
    if not bulbs or not any(world.plan.sorts[part] == "battery" for part in loop):
        return text
    blocking = [part for part in loop if not world.conducts(part)]
    for part in loop:
        if not blocking or blocking == [part]:
            world.tested |= 1 << part
    return f"{text} The circuit is closed. The {world.name(bulbs[0])} {'stays dark' if blocking else 'lights up'}."


def _disconnect(world: World, part: int, _: int) -> str:
    world.links = tuple(link for link in world.links if part not in link)
    return f"You disconnect the {world.name(part)}."


def _focus(world: World, thing: int, _: int) -> str:
    if thing not in world.focused:
        world.focused.append(thing)
    return f"You focus on the {world.name(thing)}."


def _read(world: World, thing: int, _: int) -> str:
    world.looked |= 1 << thing
    product = world.plan.goal
    return f"It says: to make {product}, mix {listing(PRODUCTS[product])} in one vessel."


def _look_at(world: World, thing: int, _: int) -> str:
    plan, sort, name = world.plan, world.plan.sorts[thing], world.name(thing)
    if sort != "note":
        world.looked |= 1 << thing
    match sort:
        case "device":
            return f"This is {world.noun(thing)}. When it is on, its temperature is {DEVICES[name][0]} degrees."
        case "substance":
            points = SUBSTANCES.get(plan.names[thing])
            if points is None or thing in world.blends:
                return f"This is {name}."
            return f"This is {name}. It melts at {points.melts} degrees and boils at {points.boils} degrees."
        case "growing":
            return f"This is {indefinite(name)}. It {'is grown' if world.is_grown(thing) else 'is not grown yet'}."
        case "thing":
            category = category_of(name)
            text = f"The {name} is {indefinite(category)}."
            years = ANIMALS.get(name)
            return f"{text} It lives for about {years} year{'s' * (years > 1)}." if years else text
        case "note":
            return f"This is {world.noun(thing)}. You can read it."
        case _:
            return f"This is {world.noun(thing)}."
