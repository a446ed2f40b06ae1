"""State and rules of a household: ALFWorld's transitions, answers and list of commands.

Rules follow the ``alfred`` PDDL domain and its text grammar (alfworld 0.4.2, TextWorld 1.7.0's PDDL engine), including
what looks like an oversight there: clean, heat and cool work through a closed door, any lamp ``use`` turns it on, only
a held object can be examined, and looking around from the middle of the room shows nothing.
"""

import json
from collections.abc import Callable

from manyturn.envs.household.problem import Problem, bits
from manyturn.envs.household.text import NOTHING, WELCOME, Grammar, bare_listing, describe, listing

Operation = tuple[Callable[..., str], int, int]
_HAS_SWITCH = "toggleable"


class Tables:
    """Texts and commands of one problem that do not depend on the state; shared by its episodes."""

    def __init__(self, problem: Problem, grammar: Grammar):
        self.problem, self.grammar = problem, grammar
        names = problem.receptacles
        self.go: dict[str, Operation] = {f"go to {name}": (World._go, i, -1) for i, name in enumerate(names)}
        self._go_sorted = sorted(self.go)
        self._others: dict[int, list[str]] = {}
        self._lists: dict[int, str] = {0: "nothing"}
        self._views: dict[tuple[int, int], str] = {}
        arrivals = [problem.locations[spot] for spot in problem.spots] if grammar.by_location else names
        self.arrive = [f"You arrive at {name}. " for name in arrivals]
        self.fixed: dict[str, Operation] = {"inventory": (World._inventory, -1, -1), "look": (World._look, -1, -1)}
        if grammar.help is not None:
            self.fixed["help"] = (World._help, -1, -1)
        self.stations = tuple(
            {"sinkbasin": "clean", "microwave": "heat", "fridge": "cool"}.get(t) for t in problem.receptacle_types
        )

    def others(self, place: int) -> list[str]:
        """Sorted commands for going to every receptacle that is not at ``place``."""
        commands = self._others.get(place)
        if commands is None:
            spots = self.problem.spots
            commands = [command for command in self._go_sorted if spots[self.go[command][1]] != place]
            self._others[place] = commands
        return commands

    def list(self, objects: int) -> str:
        """The objects of a mask in words."""
        text = self._lists.get(objects)
        if text is None:
            names = self.problem.objects
            text = self._lists[objects] = listing(names[i] for i in bits(objects))
        return text

    def view(self, receptacle: int, objects: int) -> str:
        """Objects visible in or on an open receptacle."""
        key = (receptacle, objects)
        text = self._views.get(key)
        if text is None:
            name = self.problem.receptacles[receptacle]
            start = f"The {name} is open. In it" if self.problem.openable >> receptacle & 1 else f"On the {name}"
            text = self._views[key] = f"{start}, you see {self.list(objects)}."
        return text


class World:
    """One episode's state. ``act`` changes it; everything else only reads.

    Attributes:
        place: number of the agent's location.
        held: number of the held object, or -1.
        visited: mask of the receptacles whose contents the agent has been shown.
        seen: mask of the objects that the agent has been shown.
        won: whether the goal holds.
    """

    def __init__(self, tables: Tables):
        problem = tables.problem
        self.tables, self.problem = tables, problem
        self.place, self.held = problem.start, problem.held
        self.contents = list(problem.contents)
        self.at = list(problem.at)
        # Pairs that the engine knows to be false: taken out of that receptacle and not put back.
        self.removed = [0] * len(self.contents)
        self.opened = problem.opened
        states = problem.states
        self.clean, self.hot, self.cool = states.get("clean", 0), states.get("hot", 0), states.get("cool", 0)
        self.sliced, self.toggled = states.get("sliced", 0), states.get("toggled", 0)
        self.visited = self.seen = 0
        self.won = self._reached()
        self._commands: list[dict[int, tuple[dict[str, Operation], list[str]]]] = [{} for _ in problem.at]

    # ---- what the environment asks --------------------------------------------------------------------------

    def intro(self) -> str:
        """The first observation."""
        if self.problem.here[self.place]:
            look = self._look(-1, -1)
        else:
            look = "You are in the middle of a room. Looking quickly around you, you see "
            look += listing(self.problem.receptacles) + "."
        return WELCOME.format(look=look, goal=self.problem.sentence)

    def act(self, command: str) -> tuple[str, bool]:
        """Take one command: the answer, and whether the command existed here."""
        command = command.strip()
        operation = self._local()[0].get(command)
        if operation is None:
            operation = self.tables.go.get(command)
            if operation is None or self.problem.spots[operation[1]] == self.place:
                operation = self.tables.fixed.get(command)
                if operation is None:
                    return NOTHING, False
        return operation[0](self, operation[1], operation[2]), True

    def admissible(self) -> list[str]:
        """All commands that exist here, sorted; a new list each time."""
        return self._local()[1].copy()

    def progress(self) -> float:
        """Share of the sub-goals that hold: located, held, transformed, placed; for each of two objects."""
        if self.won:
            return 1.0
        problem = self.problem
        kind, targets = problem.goal.kind, problem.targets
        held = self.held >= 0 and targets >> self.held & 1
        seen = self.seen & targets
        if kind == "put":
            return (bool(seen) + held) / 3
        if kind == "light":
            return (bool(seen) + held + bool(self.seen & problem.lamps)) / 4
        if kind == "two":
            placed = max((self.contents[r] & targets).bit_count() for r in problem.goals)
            return (min(seen.bit_count(), 2) + min(held + placed, 2) + min(placed, 2)) / 6
        return (bool(seen) + held + bool(self._transformed())) / 4

    def save(self) -> bytes:
        """The state as compact JSON: plain numbers, then what differs from the start of the problem."""
        problem = self.problem
        scalars = [self.place, self.held, self.opened, self.clean, self.hot, self.cool, self.sliced, self.toggled]
        state = [*scalars, self.visited, self.seen, _changes(self.contents, problem.contents)]
        state += [_changes(self.at, problem.at), [(i, mask) for i, mask in enumerate(self.removed) if mask]]
        return json.dumps(state).encode()

    def load(self, data: bytes) -> None:
        """Inverse of ``save`` on a world of the same problem."""
        problem = self.problem
        *scalars, contents, at, removed = json.loads(data)
        self.place, self.held, self.opened, self.clean, self.hot, self.cool, self.sliced, self.toggled = scalars[:8]
        self.visited, self.seen = scalars[8:]
        self.contents, self.at, self.removed = list(problem.contents), list(problem.at), [0] * len(problem.contents)
        for masks, changes in ((self.contents, contents), (self.at, at), (self.removed, removed)):
            for i, mask in changes:
                masks[i] = mask
        self.won = self._reached()
        self._commands = [{} for _ in self.at]

    # ---- commands that exist here ---------------------------------------------------------------------------

    def _local(self) -> tuple[dict[str, Operation], list[str]]:
        """Commands that depend on the place: name -> operation, and the sorted list of all commands."""
        cached = self._commands[self.place]
        entry = cached.get(self.held)
        if entry is None:
            operations: dict[str, Operation] = {}
            for receptacle in self.problem.here[self.place]:
                self._offer(receptacle, operations)
            if self.held >= 0:
                self._offer_held(operations)
            tables = self.tables
            entry = operations, sorted([*operations, *tables.others(self.place), *tables.fixed])
            cached[self.held] = entry
        return entry

    def _offer(self, receptacle: int, into: dict[str, Operation]) -> None:
        problem, held, r = self.problem, self.held, receptacle
        name, objects = problem.receptacles[r], problem.objects
        into["examine " + name] = (World._examine, r, -1)
        accessible = True
        if problem.openable >> r & 1:
            accessible = bool(self.opened >> r & 1)
            into[("close " if accessible else "open ") + name] = (World._close if accessible else World._open, r, -1)
        contents, traits = self.contents[r], problem.traits
        if held < 0:
            if accessible:
                for o in bits(contents & traits["pickupable"]):
                    into[f"take {objects[o]} from {name}"] = (World._take, o, r)
        else:
            if accessible and problem.fits[r] >> held & 1:
                into[self.tables.grammar.put.format(o=objects[held], r=name)] = (World._put, held, r)
            station = self.tables.stations[r]
            if station and traits[_TRAIT[station]] >> held & 1:
                into[f"{station} {objects[held]} with {name}"] = (_TRANSFORM[station], held, r)
        for o in bits(contents & traits[_HAS_SWITCH]):
            into["use " + objects[o]] = (World._use, o, -1)

    def _offer_held(self, into: dict[str, Operation]) -> None:
        problem, held = self.problem, self.held
        name = problem.objects[held]
        into["examine " + name] = (World._inspect, held, -1)
        if problem.knives >> held & 1:
            for o in bits(self.at[self.place] & problem.traits["sliceable"]):
                into[f"slice {problem.objects[o]} with {name}"] = (World._slice, o, held)

    # ---- operations: change the state and answer ------------------------------------------------------------

    def _show(self, r: int) -> str:
        """Look at a receptacle."""
        if self.problem.openable >> r & 1 and not self.opened >> r & 1:
            return f"The {self.problem.receptacles[r]} is closed."
        contents = self.contents[r]
        self.visited |= 1 << r
        self.seen |= contents
        return self.tables.view(r, contents)

    def _go(self, r: int, _: int) -> str:
        self.place = self.problem.spots[r]
        if self.problem.lamps:
            self.won = self._reached()
        return self.tables.arrive[r] + self._show(r)

    def _examine(self, r: int, _: int) -> str:
        return self._show(r)

    def _open(self, r: int, _: int) -> str:
        self.opened |= 1 << r
        self._commands[self.place] = {}
        return f"You open the {self.problem.receptacles[r]}. {self._show(r)}"

    def _close(self, r: int, _: int) -> str:
        self.opened &= ~(1 << r)
        self._commands[self.place] = {}
        return f"You close the {self.problem.receptacles[r]}."

    def _take(self, o: int, r: int) -> str:
        bit = 1 << o
        self.contents[r] &= ~bit
        self.removed[r] |= bit
        self.at[self.place] &= ~bit
        self.seen |= bit
        self.held = o
        return self._changed(f"You pick up the {self.problem.objects[o]} from the {self.problem.receptacles[r]}.")

    def _put(self, o: int, r: int) -> str:
        bit = 1 << o
        self.contents[r] |= bit
        self.removed[r] &= ~bit
        self.at[self.place] |= bit
        self.held = -1
        putting = self.tables.grammar.putting
        return self._changed(putting.format(o=self.problem.objects[o], r=self.problem.receptacles[r]))

    def _clean(self, o: int, r: int) -> str:
        self.clean |= 1 << o
        return self._changed(f"You clean the {self.problem.objects[o]} using the {self.problem.receptacles[r]}.")

    def _heat(self, o: int, r: int) -> str:
        self.hot |= 1 << o
        self.cool &= ~(1 << o)
        return self._changed(f"You heat the {self.problem.objects[o]} using the {self.problem.receptacles[r]}.")

    def _cool(self, o: int, r: int) -> str:
        self.cool |= 1 << o
        self.hot &= ~(1 << o)
        return self._changed(f"You cool the {self.problem.objects[o]} using the {self.problem.receptacles[r]}.")

    def _use(self, o: int, _: int) -> str:
        self.toggled |= 1 << o
        return self._changed(f"You turn on the {self.problem.objects[o]}.")

    def _slice(self, o: int, knife: int) -> str:
        self.sliced |= 1 << o
        return self._changed(f"You sliced the {self.problem.objects[o]} with the {self.problem.objects[knife]}.")

    def _inspect(self, o: int, _: int) -> str:
        name = self.problem.objects[o]
        if self.problem.traits["vessel"] >> o & 1:
            return f"This is a normal {name}. In it, you see {self.tables.list(self.problem.inside.get(o, 0))}."
        on = self.toggled & self.problem.traits[_HAS_SWITCH]
        sliced = self.sliced & self.problem.traits["sliceable"]
        return describe(name, *(bool(m >> o & 1) for m in (self.clean, self.hot, self.cool, sliced, on)))

    def _inventory(self, _: int, __: int) -> str:
        if self.held < 0:
            return "You are not carrying anything."
        return f"You are carrying: a {self.problem.objects[self.held]}."

    def _look(self, _: int, __: int) -> str:
        here = self.problem.here[self.place]
        if not here:
            return "You are in the middle of a room. Looking quickly around you, you see nothing."
        facing = bare_listing(self.problem.receptacles[r] for r in here)
        # "Next to it" is what lies here and was taken out of a receptacle here, once for each such receptacle.
        loose = [self.problem.objects[o] for o in bits(self.at[self.place]) for r in here if self.removed[r] >> o & 1]
        return f"You are facing the {facing}. Next to it, you see {listing(loose)}."

    def _help(self, _: int, __: int) -> str:
        return self.tables.grammar.help or NOTHING

    def _changed(self, text: str) -> str:
        self._commands[self.place] = {}
        self.won = self._reached()
        return text

    # ---- the goal -------------------------------------------------------------------------------------------

    def _transformed(self) -> int:
        """Mask of the goal's objects that are in the state which the goal asks for."""
        match self.problem.goal.kind:
            case "clean":
                return self.problem.targets & self.clean
            case "heat":
                return self.problem.targets & self.hot
            case "cool":
                return self.problem.targets & self.cool
        return self.problem.targets

    def _reached(self) -> bool:
        problem, contents = self.problem, self.contents
        kind = problem.goal.kind
        if kind == "light":
            lit = problem.lamps & self.toggled
            if self.held < 0 or not lit or not problem.targets >> self.held & 1:
                return False
            return any(contents[r] & lit for r in problem.here[self.place])
        transformed = self._transformed()
        if kind == "two":
            return any((contents[r] & transformed).bit_count() > 1 for r in problem.goals)
        return any(contents[r] & transformed for r in problem.goals)


def _changes(now: list[int], start: tuple[int, ...]) -> list[tuple[int, int]]:
    """Positions and values where ``now`` differs."""
    if now == list(start):
        return []
    return [(i, mask) for i, (mask, old) in enumerate(zip(now, start, strict=True)) if mask != old]


_TRAIT = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
_TRANSFORM = {"clean": World._clean, "heat": World._heat, "cool": World._cool}
