"""A user with an agenda: a stack of dialogue acts that what it hears adds to and takes from.

After Schatzmann, Thomson, Weilhammer, Ye and Young 2007, "Agenda-based user simulation for bootstrapping a POMDP
dialogue system", with rules of its own. The user tells a fact when it is asked for it, when the agent gets it wrong, or
when the agent asks what else there is; otherwise it keeps it to itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users import acts
from manyturn.envs.users.acts import DialogueAct, Slot, understand
from manyturn.envs.users.phrases import AGENDA, UNSEEN_SPLIT, Phrases
from manyturn.envs.users.protocol import NOTHING, Heard, User

_MOST = 3  # acts that one utterance holds


class AgendaOptions(Options):
    """Behaviour of the agenda user."""

    noise: float = Field(default=0.0, ge=0, lt=1)
    """Chance that a told value arrives as another value of its slot, as in bad speech recognition."""
    patience: int = Field(default=4, ge=1)
    """Turns without anything new after which the user leaves."""


@dataclass(frozen=True)
class Goal:
    """Wishes and knowledge of a user.

    Args:
        wishes: key -> the wish in words. The first is said at once, each other when the one before is done; a wish is
            done when the environment's cue ``{"done": [key, ...]}`` says so.
        facts: slot -> the value that the user has in mind. Asked about another slot, it does not mind.
        opening: slots whose facts the first utterance tells.
        requests: slots that the user wants to be told, after its wishes are done.
        fallbacks: slot -> what the user takes instead when told that there is nothing.
        then: what the user wants when it has all that, with facts of its own.
    """

    wishes: Mapping[str, str]
    facts: Mapping[str, str]
    opening: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    then: "Goal | None" = None


class AgendaUser(User):
    """Plays a goal act by act.

    Args:
        slots: all that can be spoken of.
        goal_of: the goal of a task.
        options: noise and patience.
        phrases: how acts are said.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        goal_of: Callable[[Task], Goal],
        options: AgendaOptions | None = None,
        phrases: Phrases = AGENDA,
    ):
        self.options = options or AgendaOptions()
        self._slots = {slot.name: slot for slot in slots}
        self._goal_of, self._phrases = goal_of, phrases
        settings = [f"{name}={value:g}" for name, value in self.options.model_dump(exclude_defaults=True).items()]
        self.name = f"agenda({', '.join(settings)})" if settings else "agenda"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._first, self._rng = self._goal_of(task), rng
        self._unseen = task.split == UNSEEN_SPLIT
        self._stage = self._stale = 0
        self._take_up(self._first)
        return self._opening("open")

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        heard = understand(text, tuple(self._slots.values()), self._facts)
        before = self._counts()
        self._stack = []
        finished = self._notice(cue.get("done", ()))
        for act in heard:
            self._react(act)
        self._stale = 0 if finished or self._stack or self._counts() != before else self._stale + 1
        if self._stale > self.options.patience:
            return self._leave("leave")
        self._plan(finished)
        if self._stack[0].kind == "bye" and self._goal.then is not None:
            self._stage += 1
            self._take_up(self._goal.then)
            return Heard(self._opening("next"), info=self._info())
        if self._stack[0].kind == "bye":
            return self._leave("bye")
        sentences = [self._voice(act) for act in self._stack[:_MOST]]
        return Heard(" ".join(sentences), info=self._info())

    def save(self) -> Any:
        return [self._stage, self._stale, self._facts, self._fallbacks, self._informed_slots, self._learnt, self._done]

    def load(self, state: Any) -> None:
        self._stage, self._stale, *inside = state
        self._goal = self._first
        for _ in range(self._stage):
            assert self._goal.then is not None
            self._goal = self._goal.then
        self._facts, self._fallbacks, self._informed_slots, self._learnt, self._done = inside

    def _take_up(self, goal: Goal) -> None:
        self._goal = goal
        self._facts, self._fallbacks = dict(goal.facts), dict(goal.fallbacks)
        self._informed_slots: list[str] = []
        self._learnt: dict[str, str] = {}
        self._done: list[str] = []
        self._stack: list[DialogueAct] = []

    def _opening(self, act: str) -> str:
        wish = next(iter(self._goal.wishes.values()), "")
        first = [self._say(act, wish=wish)] if wish else []
        return " ".join(first + [self._voice(DialogueAct("inform", slot)) for slot in self._goal.opening])

    # ---- what is heard goes on the stack ----------------------------------------------------------------------

    def _notice(self, done: Sequence[str]) -> bool:
        """True if a wish was fulfilled since the last turn."""
        new = [wish for wish in done if wish in self._goal.wishes and wish not in self._done]
        self._done += new
        return bool(new)

    def _react(self, act: DialogueAct) -> None:
        match act.kind:
            case acts.REQUEST if act.slot in self._facts:
                self._push(DialogueAct("repeat" if act.slot in self._informed_slots else "inform", act.slot))
            case acts.REQUEST if act.slot not in self._goal.requests:
                self._push(DialogueAct("any", act.slot))
            case acts.INFORM | acts.CONFIRM if act.slot in self._facts:
                if act.value.lower() != self._facts[act.slot].lower():
                    self._push(DialogueAct("negate", act.slot, act.value))
                    self._push(DialogueAct("inform", act.slot))
                elif act.kind == acts.CONFIRM:
                    self._push(DialogueAct("confirm"))
            case acts.INFORM if act.slot in self._goal.requests:
                self._learnt[act.slot] = act.value
            case acts.CONFIRM:
                self._push(DialogueAct("confirm"))
            case acts.NOTHING_FOUND:
                self._fall_back()
            case acts.MORE:
                untold = [slot for slot in self._facts if slot not in self._informed_slots]
                self._stack += [DialogueAct("inform", untold[0])] if untold else []

    def _push(self, act: DialogueAct) -> None:
        if act not in self._stack:
            self._stack.append(act)

    def _fall_back(self) -> None:
        """Give way in one thing, told or not: the agent has found nothing with what it knows."""
        slot = next((slot for slot in self._fallbacks if slot in self._informed_slots), None)
        if slot is not None:
            self._facts[slot] = self._fallbacks.pop(slot)
            self._push(DialogueAct("inform", slot))

    def _plan(self, finished: bool) -> None:
        """Unprompted words of the user: at most one thing, and only when it need not answer."""
        denied = any(act.kind == "negate" for act in self._stack)
        if denied:  # a yes to one thing would sound like a yes to all
            self._stack = [act for act in self._stack if act.kind != "confirm"]
        if self._stack and not finished:
            return
        waiting = [wish for wish in self._goal.wishes if wish not in self._done]
        open_requests = [slot for slot in self._goal.requests if slot not in self._learnt]
        if waiting and finished:
            self._push(DialogueAct("next", "", waiting[0]))
        elif waiting:
            self._push(DialogueAct("again"))
        elif open_requests:
            self._push(DialogueAct("request", open_requests[0]))
        elif not self._stack:
            self._push(DialogueAct("bye"))

    # ---- and is said ----------------------------------------------------------------------------------------

    def _voice(self, act: DialogueAct) -> str:
        slot = self._slots.get(act.slot)
        noun, value = slot.noun if slot else "", act.value
        if act.kind in ("inform", "repeat"):
            assert slot is not None
            if act.slot not in self._informed_slots:
                self._informed_slots.append(act.slot)
            value = self._misheard(slot, self._facts[act.slot])
        return self._say(act.kind, slot=noun, value=value, wish=self._goal.wishes.get(act.value, value))

    def _misheard(self, slot: Slot, value: str) -> str:
        others = [other for other in slot.values if other != value]
        if self.options.noise and others and self._rng.random() < self.options.noise:
            return others[int(self._rng.integers(len(others)))]
        return value

    def _say(self, act: str, **parts: str) -> str:
        text = self._phrases.say(act, self._rng, self._unseen, **parts)
        return text[:1].upper() + text[1:]

    def _leave(self, act: str) -> Heard:
        return Heard(self._say(act), done=True, info=self._info())

    def _counts(self) -> tuple[int, int, int]:
        return len(self._informed_slots), len(self._learnt), len(self._done)

    def _info(self) -> dict[str, Any]:
        return {"told": list(self._informed_slots), "learnt": dict(self._learnt), "done": list(self._done)}
