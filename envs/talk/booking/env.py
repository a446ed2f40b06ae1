"""An agent at a booking desk: it asks what the user wants, looks it up, books it, and tells what the user asks."""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import SPLITS, Task
from manyturn.envs.talk.booking.errands import LEVELS, ErrandLevel, errand_tasks, goal_of, in_words, town_for
from manyturn.envs.talk.booking.expert_phrases import ask, book_text, query_text, tell
from manyturn.envs.talk.booking.tools import SHOWN, BookingDesk
from manyturn.envs.talk.booking.town import KINDS, SLOTS, TERMS, TRAITS
from manyturn.envs.talk.talk_env import TalkEnv
from manyturn.envs.tools.calls import is_call
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.users import acts
from manyturn.envs.users.agenda import AgendaOptions, AgendaUser
from manyturn.envs.users.phrases import UNSEEN_SPLIT
from manyturn.envs.users.user_env import Maker

_WANTED = tuple(dict.fromkeys(name for kind in KINDS for name in (*TRAITS[kind], *TERMS[kind])))
_REACH = ("phone", "address")
_RULES = (
    "You work at a booking desk. Find out what the user wants, look it up, book it, give the reference, and "
    "answer the user's questions. Ask for everything that a booking needs. If there is nothing suitable, say so. "
    "Text without a tool call goes to the user. The user says goodbye at the end."
)


class Booking(TalkEnv):
    """Book what a user with an agenda wants, after MultiWOZ (Budzianowski et al. 2018), in a town made for each task.

    Task:
        One or two bookings of a table or a room, with what the venue must have, when, and for whom. The user also wants
        to learn the reference, and sometimes a phone number or an address.
    Observation:
        What the user says, or what a tool returns. ``progress`` is the share of bookings and of things told that are
        right.
    Actions:
        A JSON tool call (query, book), or text for the user.
    Reward:
        1 if every booking is for a venue with all that was wanted, at the time wanted, and the last thing said of each
        thing asked for was right. ``turns`` adds the part ``informed``, the change of ``progress``.
    End:
        The user leaves. It is a success if the outcome is 1.
    Splits:
        train, validation and test: what is booked, taken together, occurs in no other split. In ``test_unseen``, which
        is as test, the user uses sentences that occur nowhere else.
    Expert:
        Asks all, looks it up, books, and tells all. It knows what the user wants only to notice what it misheard.
    Floors:
        On 400 test tasks each the expert succeeds in all. Random admissible actions succeed in 0.2, 1, 0.3 and 0 %
        (tiny, easy, medium, hard), and an agent that says nothing of use in none.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: tiny (one booking; the user's first words say all that the venue must have, whose name is one word;
            8 turns), easy (one, of which there may be more to ask; 12), medium (one, with a phone number or address to
            tell, and sometimes nothing of what is wanted, so that the user takes something else; 16) or hard (a table
            and a room; days may be full, too; 32).
        user: ``agenda``, with the options ``noise`` and ``patience``; or as in ``UserEnv``.
        rewards, max_turns: see ``TalkEnv``.
    """

    splits = (*SPLITS, UNSEEN_SPLIT)
    turn_part = "informed"
    levels = LEVELS
    level: ErrandLevel

    def __init__(
        self,
        split: str = "train",
        difficulty: str = "easy",
        user: str | Mapping[str, Any] | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        super().__init__(split, difficulty, user, rewards, max_turns)
        self._desk = BookingDesk()
        self.tools = self._desk.toolset.schemas
        self.instructions = with_tools(_RULES, self.tools)

    def makers(self) -> Mapping[str, Maker]:
        return {"agenda": Maker(AgendaOptions, lambda options: AgendaUser(tuple(SLOTS.values()), goal_of, options))}

    def tasks(self, split: str) -> Sequence[Task]:
        assert self.difficulty is not None
        return errand_tasks(split, self.difficulty)

    def brief(self, task: Task) -> str:
        return in_words(task)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._desk.open(town_for(task), task.id)
        self._errands: list[dict[str, Any]] = list(task.params["errands"])
        self._agent_values: dict[str, dict[str, str]] = {errand["kind"]: {} for errand in self._errands}
        self._heard: dict[str, dict[str, str]] = {errand["kind"]: {} for errand in self._errands}
        self._at = 0  # the errand that is being talked about
        opening = self.meet(task)
        self._listen(opening)
        return opening

    def reply(self, action: str) -> Turn:
        if is_call(action):
            return self._desk.toolset.answer(action).turn(self)
        if not action.strip():
            return self.invalid("Say something to the user, or call a tool.")
        self._tell(action)
        heard = self.user.hear(action, {"done": list(self._desk.booked)})
        if heard.done:
            right = self.progress() == 1
            return (self.succeed if right else self.fail)(heard.utterance or "The user has left.")
        self._listen(heard.utterance)
        return self.go_on(heard.utterance)

    def _tell(self, text: str) -> None:
        """Keep what the agent says of what the user wants to be told; the last value said counts."""
        kind = self._kind
        for act in acts.understand(text, [SLOTS[name] for name in (*_REACH, "reference")], {}):
            if act.value:
                self._agent_values[kind][act.slot] = act.value.lower()

    def _listen(self, utterance: str) -> None:
        """Keep what the user says it wants, whoever plays the user; naming another errand's kind begins that one."""
        lowered = utterance.lower()
        self._at = next((at for at, errand in enumerate(self._errands) if errand["kind"] in lowered), self._at)
        for act in acts.understand(utterance, [SLOTS[name] for name in _WANTED], {}):
            if act.value:
                self._heard[self._kind][act.slot] = act.value.lower()

    @property
    def _kind(self) -> str:
        return self._errands[self._at]["kind"]

    def _due(self, errand: Mapping[str, Any]) -> dict[str, str]:
        """Facts to tell the user, with their right values."""
        kind = errand["kind"]
        venue = self._desk.venue(kind)
        right = {} if venue is None else {**self._desk.booked[kind], **venue.facts()}
        return {name: right.get(name, "") for name in (*errand["asked"], "reference")}

    def _is_booked(self, errand: Mapping[str, Any]) -> bool:
        kind, terms = errand["kind"], {**errand["traits"], **errand["terms"], **errand["fallback"]}
        venue = self._desk.venue(kind)
        return (
            venue is not None
            and venue.fits({name: terms[name] for name in errand["traits"]})
            and all(self._desk.booked[kind][term] == terms[term] for term in TERMS[kind])
        )

    def progress(self) -> float:
        right = [self._is_booked(errand) for errand in self._errands]
        for errand in self._errands:
            sentences = self._agent_values[errand["kind"]]
            right += [
                bool(value) and sentences.get(name, "") == value.lower() for name, value in self._due(errand).items()
            ]
        return sum(right) / len(right)

    def admissible(self) -> list[str]:
        """Questions about each thing, calls with what was heard, and sentences that tell what was found."""
        kind, heard = self._kind, self._heard[self._kind]
        able = [ask([name]) for name in (*TRAITS[kind], *TERMS[kind])]
        able += ["Sorry, there is nothing.", "Is there anything else?", query_text(kind, {}), query_text(kind, heard)]
        venues = [venue for name in self._desk.venue_names or () if (venue := self._desk.town.named(name, kind))]
        if all(term in heard for term in TERMS[kind]):
            able += [book_text(kind, venue.name, heard) for venue in venues]
        able += [tell({name: value}) for venue in venues for name, value in venue.facts().items() if name in _REACH]
        able += [tell({"reference": self._desk.booked[kind]["reference"]})] if kind in self._desk.booked else []
        return list(dict.fromkeys(able))

    def anchor(self) -> Hashable:
        return (
            self.task.id,
            self._at,
            json.dumps([self._heard, self._desk.booked, self._agent_values, self._desk.venue_names]),
        )

    def expert(self) -> str:
        """Asks all, looks it up, books, and tells all; knows what the user wants only to notice what it misheard."""
        errand, kind, heard = self._errands[self._at], self._kind, self._heard[self._kind]
        if kind in self._desk.booked:
            return tell(self._due(errand))
        terms = {**errand["traits"], **errand["terms"]}
        missing = [name for name in terms if name not in heard]
        if missing:
            return ask(missing[:3])
        for name, value in terms.items():
            if heard[name] not in (value, errand["fallback"].get(name)):
                return f"Is the {SLOTS[name].noun} {heard[name]}?"
        traits = {name: heard[name] for name in errand["traits"]}
        fit = self._desk.town.find(kind, traits)
        if self._desk.venue_names != [venue.name for venue in fit[:SHOWN]]:
            return query_text(kind, traits)
        free = [venue for venue in fit if heard["day"] not in venue.full]
        if not free:
            return f"Sorry, nothing is free on {heard['day']}." if fit else f"Sorry, there is no such {kind}."
        return book_text(kind, free[0].name, heard)

    def state(self) -> Any:
        return [self._desk.booked, self._agent_values, self._heard, self._desk.venue_names, self._at]

    def set_state(self, state: Any) -> None:
        self._desk.booked, self._agent_values, self._heard, self._desk.venue_names, self._at = state
