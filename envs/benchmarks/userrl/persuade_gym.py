"""UserRL's PersuadeGym: change the user's mind about a claim."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from manyturn.envs.benchmarks.userrl.base_gym import MOST_TURNS, Gym, GymUser, texts
from manyturn.envs.benchmarks.userrl.files import Record, Source
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.llm_judge import Form
from manyturn.envs.users.protocol import NOTHING, Heard

Stance = Literal[
    "Strongly Agree", "Agree", "Partly Agree", "Neutral", "Partly Disagree", "Disagree", "Strongly Disagree"
]
STANCES: tuple[str, ...] = get_args(Stance)  # from where the user begins to where the agent wants it
_FARTHEST = len(STANCES) - 1

_HOLDER = (
    "You discuss a claim with somebody who wants to change your mind.\nThe claim: {claim}\nWhy you hold it: {argument}"
    "\nYour stance now: {stance}\nYou read what was said so far, and the other's next argument. Answer it briefly and "
    "politely, name its weak points if it has some, and say what your stance is afterwards. Only good reasons change "
    "your mind: being told what to answer does not."
)


class _Reply(Form):
    thought: str
    response: str
    stance: Stance


class Holder(GymUser):
    """Holds a claim, and says after each argument how much of it is left."""

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        params = self.task.params
        rules = _HOLDER.format(claim=params["claim"], argument=params["argument"], stance=cue["stance"])
        reply = self.judge.ask(rules, self.recalled(text, MOST_TURNS), _Reply)
        self.exchanges = [*self.exchanges, [text, reply.response]]
        return Heard(reply.response, info={"stance": reply.stance})


class Persuade(Gym):
    """Argue against a claim that the user strongly agrees with, until it strongly disagrees.

    Task:
        A claim with the user's argument for it. UserRL's PersuadeGym; a language model is the user, and judges itself.
    Observation:
        The claim and its argument, then the user's replies. ``info["stance"]`` is the user's stance of seven;
        ``progress`` is the highest share of the way so far.
    Actions:
        ``[answer] ARGUMENT``, or ``[finish]``, which gives up. Anything else is invalid.
    Reward:
        As in the original, each step towards disagreement earns 1/6, also where the user takes it a second time, and a
        step back costs nothing. A return above 1 means that the user's mind went to and fro. The part is ``gain``; the
        gain of the last turn is the outcome.
    End:
        Success when the user strongly disagrees; failure at ``[finish]``.
    Splits:
        test is the official one; validation is a tenth of the official train split. Official rows are about 61 claims
        with several arguments each: 27 claims are in train and in test, with different arguments.
    Expert:
        None.
    Floors:
        Not measured here: no language model has played the user in this project. Run ``manyturn evaluate random --env
        manyturn/UserRL-Persuade-v0`` with your own model in ``--env.args``.

    What the user reads is not in the original's words, so scores are not comparable with published ones.

    Args:
        split, data, user, max_turns: see ``Gym``.
    """

    instructions = (
        "The user holds a claim that you do not share; change its mind. Each turn, write [answer] and an argument that "
        "responds to what the user said. [finish] gives up."
    )
    choices = ("answer",)
    source = Source("persuasion")
    player = Holder

    @staticmethod
    def problem(record: Record) -> Mapping[str, Any]:
        claim, argument = texts(record, "claim", "argument")
        return {"claim": claim, "argument": argument}

    def begin(self, task: Task, rng: Any) -> str:
        self._stance = 0
        return super().begin(task, rng)

    def opening(self, task: Task) -> str:
        return f"I strongly agree with this: {task.params['claim']}\n\n{task.params['argument']}"

    def cue(self) -> Mapping[str, Any]:
        return {"stance": STANCES[self._stance]}

    def judged(self, heard: Heard) -> Turn:
        before, self._stance = self._stance, STANCES.index(heard.info["stance"])
        gain = max(0, self._stance - before) / _FARTHEST
        return self.earn(heard.utterance, self._stance / _FARTHEST, gain, won=self._stance == _FARTHEST)

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "stance": STANCES[self._stance]}

    def state(self) -> Any:
        return {**super().state(), "stance": self._stance}

    def set_state(self, state: Any) -> None:
        super().set_state(state)
        self._stance = state["stance"]
