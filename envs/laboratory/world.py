"""The state of an episode in a laboratory: time, sight, circuits, and the sentences that describe them."""

from typing import Any

from manyturn.envs.adventure.object_names import indefinite, listing
from manyturn.envs.laboratory.layout import CARRIED, FIXED, GONE, SITUATIONS, Plan
from manyturn.envs.laboratory.object_types import LIVES, stage_of, with_article
from manyturn.envs.laboratory.substances import AMBIENT, HEATED, ROOM_DEGREES, after, form_of, state_of

Link = tuple[int, int]


class World:
    """Rooms and things as they are now. ``commands.act`` changes them.

    Attributes:
        room: number of the agent's room.
        places: of the things, see ``plan.CARRIED``.
        amounts: for each thing a temperature, an age in minutes, or the minutes for which a pot is wet.
        doors, opened, on: masks of open doors, open lids and devices that are on.
        links: pairs of parts that are connected, each in order.
        blends: substance -> its ingredients, if it is a mixture.
        forms: substance or growing thing -> its name as it is now.
        focused: what the agent has focused on, in order.
        readings: substance -> degrees at its last measurement.
        tested: mask of the things that were part of a closed circuit in which all others conduct.
        visited: mask of rooms; ``shown`` of lids that the agent has seen open; ``looked`` of things looked at.
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        self.room = plan.start
        self.places = plan.places.copy()
        self.amounts = [v if s == "substance" else 0 for s, v in zip(plan.sorts, plan.values, strict=True)]
        self.doors, self.opened, self.on = plan.doors, plan.opened, plan.on
        self.links: tuple[Link, ...] = ()
        self.blends: dict[int, tuple[str, ...]] = {}
        self.focused: list[int] = []
        self.readings: dict[int, int] = {}
        self.tested = self.visited = self.shown = self.looked = 0
        self.forms = {thing: self._form(thing) for thing in (*plan.substances, *plan.growing)}
        self.notice()

    # ---- state ----------------------------------------------------------------------------------------------

    def key(self) -> tuple[Any, ...]:
        """The situation as far as commands and descriptions depend on it."""
        return (self.room, self.doors, self.opened, self.on, self.links, *self.places, *self.forms.values())

    def save(self) -> tuple[Any, ...]:
        """The state as plain values that can be a key."""
        now = (self.room, self.doors, self.opened, self.on, self.tested, self.visited, self.shown, self.looked)
        records = (tuple(self.blends.items()), tuple(self.focused), tuple(self.readings.items()))
        return (now, tuple(self.places), tuple(self.amounts), self.links, *records)

    def load(self, data: list[Any]) -> None:
        """Inverse of ``save`` in the same laboratory, also where JSON has made lists of tuples."""
        now, places, amounts, links, blends, focused, readings = data
        self.room, self.doors, self.opened, self.on, self.tested, self.visited, self.shown, self.looked = now
        self.places, self.amounts, self.focused = list(places), list(amounts), list(focused)
        self.links = tuple((a, b) for a, b in links)
        self.blends = {thing: tuple(names) for thing, names in blends}
        self.readings = dict(readings)
        self.forms = {thing: self._form(thing) for thing in self.forms}

    def blend(self, thing: int, ingredients: tuple[str, ...]) -> None:
        """Make a substance a mixture."""
        self.blends[thing] = ingredients
        self.forms[thing] = self._form(thing)

    def ingredients(self, thing: int) -> tuple[str, ...]:
        """Substances that a substance was mixed from; only itself if it was not."""
        return self.blends.get(thing) or (self.plan.names[thing],)

    def state(self, thing: int) -> int:
        """State of a substance: solid, liquid or gas."""
        return state_of(self.plan.names[thing], self.amounts[thing])

    def stage(self, thing: int) -> int:
        """Number of the stage that a growing thing is in."""
        return stage_of(self.plan.names[thing], self.amounts[thing])

    def is_grown(self, thing: int) -> bool:
        """True in the last stage."""
        return self.stage(thing) == len(LIVES[self.plan.names[thing]].stages) - 1

    def holder(self, thing: int) -> int:
        """The thing in or on which a thing is; -1 if it is carried, gone, or on the floor."""
        return max(self.places[thing] - len(self.plan.rooms), -1)

    def contents(self, thing: int) -> list[int]:
        """Things in or on a thing."""
        place = self.plan.inside(thing)
        return [other for other, where in enumerate(self.places) if where == place]

    def room_of(self, thing: int) -> int:
        """Room in which a thing is; -1 if it is carried or gone."""
        while (holder := self.holder(thing)) >= 0:
            thing = holder
        return max(self.places[thing], -1)

    def is_closed(self, thing: int) -> bool:
        """True for a thing with a closed lid."""
        return bool((self.plan.lids & ~self.opened) >> thing & 1)

    # ---- sight ----------------------------------------------------------------------------------------------

    def visible(self) -> list[int]:
        """Things that the agent sees and can reach now, in the order of their numbers."""
        things = []
        for thing in range(len(self.places)):
            top, is_open = thing, True
            while (holder := self.holder(top)) >= 0 and is_open:
                top, is_open = holder, not self.is_closed(holder)
            if is_open and self.places[top] in (self.room, CARRIED):
                things.append(thing)
        return things

    def sees(self, thing: int) -> bool:
        """True if the agent has been shown where a thing is, or carries it."""
        while (holder := self.holder(thing)) >= 0:
            if self.plan.lids >> holder & 1 and not self.shown >> holder & 1:
                return False
            thing = holder
        place = self.places[thing]
        return place == CARRIED or (place >= 0 and bool(self.visited >> place & 1))

    def notice(self) -> None:
        """Remember the room, and the lids in it that are open."""
        self.visited |= 1 << self.room
        lids = self.plan.lids & self.opened & ~self.shown
        for thing in range(lids.bit_length()):
            if lids >> thing & 1 and self.places[thing] == self.room:
                self.shown |= 1 << thing

    # ---- time -----------------------------------------------------------------------------------------------

    def pass_time(self, minutes: int) -> list[str]:
        """Let time pass; sentences about changes."""
        plan, events = self.plan, list[tuple[int, str]]()
        for thing in plan.substances:
            target, share = self._surroundings(thing)
            if self.amounts[thing] != target and self.places[thing] != GONE:
                before = self.state(thing)
                self.amounts[thing] = after(self.amounts[thing], target, share, minutes)
                if (now := self.state(thing)) != before and thing not in self.blends:
                    verb = ("freezes", "melts", "boils")[now] if now > before else ("freezes", "condenses")[now]
                    events.append((thing, f"The {self.forms[thing]} {verb}."))
                    self.forms[thing] = self._form(thing)
        for thing in plan.growing:
            before = self.stage(thing)
            self._grow(thing, minutes)
            if self.stage(thing) != before:
                text, self.forms[thing] = f"The {self.forms[thing]} has become", self._form(thing)
                events.append((thing, f"{text} {indefinite(self.forms[thing])}."))
        if not events:
            return []
        visible = set(self.visible())
        return [text for thing, text in events if thing in visible]

    def _surroundings(self, thing: int) -> tuple[int, int]:
        """Temperature around a substance, and the share of the difference that a minute closes."""
        vessel = self.holder(thing)
        device = self.holder(vessel) if vessel >= 0 else -1
        if device >= 0 and self.on >> device & 1:
            return self.plan.degrees(device), HEATED
        return ROOM_DEGREES, AMBIENT

    def _grow(self, thing: int, minutes: int) -> None:
        holder = self.holder(thing)
        if holder < 0:
            return
        match self.plan.sorts[holder]:
            case "pot":
                minutes = min(minutes, self.amounts[holder])
                self.amounts[holder] -= minutes
                self.amounts[thing] += minutes
            case "device" if self.on >> holder & 1:
                self.amounts[thing] += minutes

    # ---- circuits -------------------------------------------------------------------------------------------

    def neighbours(self, part: int) -> list[int]:
        """Parts that a part is connected to, at most two."""
        return [b if a == part else a for a, b in self.links if part in (a, b)]

    def circuit(self, part: int) -> tuple[int, ...]:
        """Parts of the closed circuit that a part belongs to; empty if there is none."""
        chain, previous = [part], -1
        while True:
            onward = [other for other in self.neighbours(chain[-1]) if other != previous]
            if not onward or len(self.neighbours(chain[-1])) < 2:
                return ()
            previous = chain[-1]
            if onward[0] == part:
                return tuple(chain)
            chain.append(onward[0])

    def conducts(self, part: int) -> bool:
        """True for what electricity passes through."""
        return self.plan.sorts[part] != "item" or bool(self.plan.values[part])

    # ---- words ----------------------------------------------------------------------------------------------

    def name(self, thing: int) -> str:
        """Name of a thing as it is now."""
        return self.forms.get(thing) or self.plan.names[thing]

    def _form(self, thing: int) -> str:
        """Name of a substance or a growing thing, by its temperature or age."""
        if self.plan.sorts[thing] == "substance":
            return form_of(self.ingredients(thing), self.amounts[thing])
        return LIVES[self.plan.names[thing]].stages[self.stage(thing)]

    def noun(self, thing: int) -> str:
        """A thing with its article, its state and its contents."""
        sort, name, things = self.plan.sorts[thing], self.name(thing), self.contents(thing)
        if sort == "substance":
            return name
        if sort == "vessel":
            return f"{indefinite(name)} of {listing(map(self.name, things))}" if things else f"an empty {name}"
        if sort not in FIXED:
            return with_article(name)
        lid = "" if not self.plan.lids >> thing & 1 else "closed" if self.is_closed(thing) else "open"
        text = indefinite(f"{lid} {name}".strip())
        if sort == "device":
            text += f", which is {'on' if self.on >> thing & 1 else 'off'}"
        if sort == "pot":
            text += f" of {'wet' if self.amounts[thing] else 'dry'} soil"
        if not things or lid == "closed":
            return text
        preposition = "on" if sort == "surface" or (sort == "device" and not lid) else "in"
        if sort == "device":
            return f"{text} and has {listing(map(self.noun, things))} {preposition} it"
        return f"{text} with {listing(map(self.noun, things))} {preposition} it"

    def describe(self) -> str:
        """The room as the agent sees it."""
        key = self.key()
        view = self.plan.views.get(key)
        if view is None:
            if len(self.plan.views) >= SITUATIONS:
                self.plan.views.clear()
            view = self.plan.views[key] = " ".join(self._sentences())
        return view

    def _sentences(self) -> list[str]:
        plan = self.plan
        here = [thing for thing, place in enumerate(self.places) if place == self.room]
        texts = [f"You are in the {plan.rooms[self.room]}."]
        texts += [f"There is {self.noun(thing)}." for thing in here if plan.sorts[thing] in FIXED]
        if loose := [self.noun(thing) for thing in here if plan.sorts[thing] not in FIXED]:
            texts.append(f"On the floor you see {listing(loose)}.")
        texts += [f"The {self.name(a)} is connected to the {self.name(b)}." for a, b in self.links if a in here]
        for room, (_, door) in sorted(plan.exits[self.room].items()):
            texts.append(f"{'An open' if self.doors >> door & 1 else 'A closed'} door leads to the {room}.")
        return texts
