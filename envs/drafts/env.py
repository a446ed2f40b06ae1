"""Drafts for a user with preferences that are never said, as an environment."""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.tasks.task import SPLITS, Task
from manyturn.envs.drafts.editor import Evidence, edit
from manyturn.envs.drafts.style import DEFAULT, message, style_of, styles, word_distance
from manyturn.envs.drafts.tasks import GROUPS, LEVELS, UNSEEN, DraftsLevel, preferred, tasks

REWARDS = ("outcome", "turns")
_LONGEST = 300  # characters of a draft
_GREETINGS = "GREETING is Dear, Hi, Hello or nothing"
_CLOSINGS = "CLOSING is Regards, Thanks, Cheers or nothing"
_FORM = "GREETING NAME, the THING is on DAY at HOUR. CLOSING"


class Drafts(TextEnv):
    """Write short messages for a user who edits each draft and never says what they prefer.

    Task:
        Several items, one a turn. The user has a preference in each slot of a message: greeting, order of day and hour,
        forms of both, closing. In the manner of PRELUDE (Gao et al. 2024, arXiv 2404.15269), with a rule in place of
        its language model, and preferences in form only.
    Observation:
        The user's version of the last draft, and the next item. ``progress`` is the share of slots that the last draft
        to each group of recipients had right.
    Actions:
        The text of a draft. One that is not in the form of the instructions is invalid; the item stays.
    Reward:
        1 if the drafts of the last two or three items need no edit. ``turns`` adds ``edits``, the cost of each edit:
        minus its distance in words over the length of the user's version, divided by the number of items.
    End:
        After the last item. ``measures`` has the mean cost of the edits before the scored items (``early``) and of the
        scored ones (``late``).
    Splits:
        train, validation and test share no task. The combinations of preferences in ``test_unseen`` occur in no other
        split.
    Expert:
        Writes what edits have shown, and the first choice elsewhere. It uses only the edits.
    Floors:
        ``manyturn envs manyturn/Drafts-v0`` measures expert and random policy on every level. A policy that always
        writes in one style succeeds where the user happens to prefer it.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``tiny`` (three slots, 3 items; default), ``easy`` (five slots, 4 items), ``medium`` (6 items, the
            user corrects the first two slots at most) or ``hard`` (10 items, other preferences for colleagues than for
            customers).
        rewards: ``outcome``, or ``turns``, which adds ``edits``.
        max_turns: default by difficulty, from 4 to 12.
    """

    splits = (*SPLITS, UNSEEN)
    harmless = (*TextEnv.harmless, "rewards")
    levels: Mapping[str, DraftsLevel] = LEVELS
    level: DraftsLevel
    part_names = ()

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(unknown("rewards", rewards, REWARDS))
        super().__init__(split, max_turns, difficulty)
        self._pays_turns = rewards == "turns"
        if self._pays_turns:
            self.part_names = ("edits",)  # what this instance gives
        self._styles = styles(self.level.slots)
        self.instructions = self._instructions()

    def _instructions(self) -> str:
        level = self.level
        choices = [_GREETINGS, _CLOSINGS, "DAY is in full or its first three letters"]
        if "order" in level.slots:
            choices += ["HOUR is a number or a word", "the hour may come before the day: at HOUR on DAY"]
        reading = (
            f"The user reads a draft from left to right and corrects {level.corrections} things at most. "
            if level.corrections < len(level.slots)
            else "The user corrects all that they would write otherwise. "
        )
        groups = "Preferences for colleagues and customers differ. " if level.groups > 1 else ""
        return (
            f"Write short messages for a user, one a turn, in this form: {_FORM}\n{'; '.join(choices)}. The user has a "
            f"preference in each of these, and never says it, but edits your drafts. {reading}{groups}"
            f"The drafts of the last {level.scored} of {level.items} items must need no edit."
        )

    def tasks(self, split: str) -> Sequence[Task]:
        return tasks(split, self.difficulty or "")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._items: list[dict[str, str]] = task.params["items"]
        self._evidence = {group: Evidence(self.level.slots, self.level.corrections) for group in GROUPS}
        self._costs: list[float] = []
        self._wrong: list[int] = []
        return self._item()

    def respond(self, action: str) -> Turn:
        facts = self._items[len(self._costs)]
        draft = style_of(facts, action, self.level.slots) if len(action) <= _LONGEST else None
        if draft is None:
            return self.invalid(f"The user cannot use this draft: write it as {_FORM}. {self._item()}")
        wish = {**DEFAULT, **preferred(self.task.params, facts["group"])}
        edited, slots = edit(draft, wish, self.level.slots, self.level.corrections)
        self._evidence[facts["group"]].read(edited, slots)
        version = message(facts, edited)
        cost = word_distance(message(facts, draft), version) / len(version.split())
        self._costs.append(cost)
        self._wrong.append(sum(draft[slot] != wish[slot] for slot in self.level.slots))
        text = f"The user sends: {version}" if slots else "The user sends it."
        paid = {"edits": -cost / len(self._items)} if cost and self._pays_turns else {}
        if len(self._costs) < len(self._items):
            return self.go_on(f"{text}\n{self._item()}", **paid)
        if any(self._wrong[-self.level.scored :]):
            return self.fail(text, **paid)
        return self.succeed(text, **paid)

    def _item(self) -> str:
        """The next item in words."""
        facts = self._items[len(self._costs)]
        to = f"the {facts['group']} {facts['name']}" if self.level.groups > 1 else facts["name"]
        return f"To {to}: {facts['thing']}, {facts['day']}, {facts['hour']}"

    def admissible(self) -> list[str]:
        """The next message in every style."""
        facts = self._items[min(len(self._costs), len(self._items) - 1)]
        return [message(facts, style) for style in self._styles]

    def anchor(self) -> Hashable:
        shown = tuple(tuple(sorted(evidence.shown.items())) for evidence in self._evidence.values())
        return (self.task.id, len(self._costs), shown, self.observation)

    def anchor_text(self) -> str:
        """The user's last version and the next item."""
        return self.observation

    def progress(self) -> float:
        """Share of slots that the last draft to each group had right."""
        last = {item["group"]: wrong for item, wrong in zip(self._items, self._wrong, strict=False)}
        slots = len(self.level.slots)
        return sum(slots - wrong for wrong in last.values()) / (slots * self.level.groups)

    def measures(self) -> Mapping[str, float]:
        """Mean cost of the edits, before the scored items and of them; 1 for an item without a draft."""
        costs = [*self._costs, *[1.0] * (len(self._items) - len(self._costs))]
        scored = self.level.scored
        early, late = costs[:-scored], costs[-scored:]
        return {"early": sum(early) / len(early), "late": sum(late) / len(late)}

    def expert(self) -> str:
        """Writes what edits have shown, and the first choice elsewhere."""
        facts = self._items[len(self._costs)]
        return message(facts, self._evidence[facts["group"]].best())

    def save(self) -> bytes:
        shown: Any = {group: evidence.shown for group, evidence in self._evidence.items()}
        return json.dumps([shown, self._costs, self._wrong]).encode()

    def load(self, data: bytes) -> None:
        shown, self._costs, self._wrong = json.loads(data)
        for group, evidence in self._evidence.items():
            evidence.load(shown[group])
