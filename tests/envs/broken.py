"""A sound environment and relatives of it with one fault each: what ``manyturn check`` must find."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of


class Sound(TextEnv):
    """Say the three digits of a code, one by one."""

    instructions = "Say one digit at a time."
    max_turns = 6
    part_names = ("digit",)
    size = 300  # tasks of a split

    def tasks(self, split: str) -> Sequence[Task]:
        def make(number: int) -> Task:
            rng = generator("code", split, number)
            while True:
                params: dict[str, Any] = {"code": rng.integers(0, 10, 3).tolist(), "salt": int(rng.integers(10**6))}
                if split_of(digest(params)) == split:
                    return Task(f"{split}/{number}", split, params)

        return GeneratedTasks(make, self.size, f"{split}/")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.done = 0
        self.code = [str(digit) for digit in task.params["code"]]
        return f"Noise {rng.integers(1000)}. Digit 1, {self.code[0]} is right."

    def respond(self, action: str) -> Turn:
        if action not in "0123456789" or not action:
            return self.invalid("Say one digit.")
        if action != self.code[self.done]:
            return self.fail("Wrong.")
        self.done += 1
        if self.done == 3:
            return self.succeed("Open.", digit=0.125)
        return self.go_on(f"Noise {self.rng.integers(1000)}. {self.code[self.done]} is right.", digit=0.125)

    def admissible(self) -> list[str]:
        return list("0123456789")

    def progress(self) -> float:
        return self.done / 3

    def expert(self) -> str:
        return self.code[min(self.done, 2)]

    def answer(self) -> str:
        return "".join(self.code)

    def save(self) -> bytes:
        return json.dumps(self.done).encode()

    def load(self, data: bytes) -> None:
        self.done = json.loads(data)


def __getattr__(name: str) -> type[Sound]:
    """A world with several faults: ``OneAnchor_Leaks`` has both."""
    faults = [globals().get(fault) for fault in name.split("_")]
    if len(faults) < 2 or not all(faults):
        raise AttributeError(name)
    return type(name, tuple(faults), {"__module__": __name__, "size": 12})


class GlobalChance(Sound):
    def begin(self, task, rng):
        return f"{super().begin(task, rng)} {random.random()}"


class HashOrder(Sound):
    def begin(self, task, rng):
        return super().begin(task, rng) + " ".join({f"word{i}" for i in range(20)})


class LeftOver(Sound):
    memory = 0

    def respond(self, action):
        self.memory += 1
        turn = super().respond(action)
        return replace(turn, text=f"{turn.text} {self.memory}")


class CrashesOnOddText(Sound):
    def respond(self, action):
        action.encode("ascii")
        return super().respond(action)


class ForgetsInSnapshot(Sound):
    def load(self, data):
        self.done = 0


class TextSnapshot(Sound):
    def snapshot(self):
        return "text"


class PartsMissing(Sound):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward + 0.5, terminated, truncated, info


class UnlistedPart(Sound):
    part_names = ("digits",)


class EarlyOutcome(Sound):
    def respond(self, action):
        return replace(super().respond(action), parts={"outcome": 0.0})


class BothEnds(Sound):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, terminated or truncated, info


class Endless(Sound):
    def step(self, action):
        text, reward, terminated, _, info = super().step(action)
        self._live = not terminated
        return text, reward, terminated, False, info


class NoTurnKey(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        del info["turn"]
        return *rest, info


class OverfullProgress(Sound):
    def progress(self):
        return float(self.done)


class BadExpert(Sound):
    def expert(self):
        return super().expert() if self.done < 2 else str((int(self.code[2]) + 1) % 10)


class TooEasy(Sound):
    def respond(self, action):
        return self.succeed("Any will do.") if action.isdigit() else self.invalid("no")


class Unscorable(Sound):
    def respond(self, action):
        return self.go_on("Hm.", digit=float("nan"))


class Huge(Sound):
    def begin(self, task, rng):
        return super().begin(task, rng) + "0" * 2_000_000


class Lengthy(Sound):
    """Its texts fill a context, and its expert says more than most models are allowed to."""

    def begin(self, task, rng):
        return super().begin(task, rng) + " ." * 20_000

    def respond(self, action):
        return super().respond(action.partition(" ")[0])

    def expert(self):
        return super().expert() + " and" * 200


class Sums(Sound):
    """Answers of one digit, which texts hold by coincidence."""

    def begin(self, task, rng):
        self.done = 0
        return f"Number {task.params['salt'] * 10 + 6}: what is its last digit?"

    def respond(self, action):
        return self.succeed("Yes.") if action == "6" else self.fail("No.")

    def admissible(self):
        return ["5", "6"]

    def expert(self):
        return "6"

    def answer(self):
        return "6"


class LeaksDigit(Sums):
    def begin(self, task, rng):
        return f"{super().begin(task, rng)} It is 6."


class SharedProblems(Sound):
    def tasks(self, split):
        return [Task(f"{split}/{i}", split, {"code": [i % 10, 1, 2]}) for i in range(10)]


class ChangingTasks(Sound):
    made: ClassVar[int] = 0

    def tasks(self, split):
        ChangingTasks.made += 1
        salt = (ChangingTasks.made, split)
        return [Task(f"{split}/{i}", split, {"code": [i % 10, 1, 2], "salt": salt}) for i in range(10)]


class OneIdForAll(Sound):
    def tasks(self, split):
        return [Task(split, split, {"code": [i % 10, 1, 2], "salt": split}) for i in range(10)]


class UnplainParams(Sound):
    def tasks(self, split):
        return [Task(f"{split}/{i}", split, {"code": np.array([i % 10, 1, 2]), "salt": split}) for i in range(10)]


class Leaks(Sound):
    def begin(self, task, rng):
        return f"{super().begin(task, rng)} {self.answer()} "


class OneAnchor(Sound):
    def anchor(self):
        return self.task.id


class AnchorOfChance(Sound):
    def anchor(self):
        return random.random()


class Numbers(gymnasium.Env):
    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(3)


class ClosesOnce(Sound):
    closed = False

    def close(self):
        if self.closed:
            raise OSError("closed twice")
        self.closed = True


class RaisesLate(Sound):
    def respond(self, action):
        if self.done == 2:
            raise KeyError(action)
        return super().respond(action)


class CannotBegin(Sound):
    def begin(self, task, rng):
        if int(task.id.rpartition("/")[2]) % 3 == 0:
            raise KeyError(task.id)
        return super().begin(task, rng)


class LosesItsTurn(Sound):
    def respond(self, action):
        return super().respond(action) if self.done != 2 else None


class KnowsDigitsOnly(Sound):
    def respond(self, action):
        return super().respond({digit: digit for digit in "0123456789"}[action])


class LostExpert(Sound):
    """Its expert raises after an action that was not understood."""

    def respond(self, action):
        turn = super().respond(action)
        self.astray = not turn.understood
        return turn

    def expert(self):
        return [][0] if self.turn and self.astray else super().expert()


class Narrow(Sound):
    def __init__(self):
        super().__init__()
        self.observation_space = TextSpace(max_length=12)


class NaNPart(Sound):
    def respond(self, action):
        return replace(turn := super().respond(action), parts={**turn.parts, "digit": float("nan")})


class FixedSeed(Sound):
    def reset(self, *, seed=7, options=None):
        return super().reset(seed=seed, options=options)


class CannotClose(Sound):
    def close(self):
        raise OSError("cannot close")


class RandomTasks(Sound):
    def tasks(self, split):
        # A code that begins with 0 is never the number of a noise, which would be a leak by chance.
        codes = [[0, random.randrange(10), random.randrange(10)] for _ in range(12)]
        params = ({"code": code, "salt": random.randrange(10**6), "split": split} for code in codes)
        return [Task(f"{split}/{i}", split, one) for i, one in enumerate(params)]


class LosesItsParts(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        del info["reward_parts"]
        return *rest, info


class ForgetsFiles(Sound):
    def begin(self, task, rng):
        open(__file__, "rb")  # noqa: SIM115 - which is the fault
        return super().begin(task, rng)


class TextSaved(Sound):
    def save(self):
        return "text"


class NumberAsAnswer(Sound):
    def answer(self):
        return 42


class TextMeasured(Sound):
    def measures(self):
        return {"steps": "three"}


class OneMeasure(Sound):
    def measures(self):
        return 3.0


class TextAsPart(Sound):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "reward_parts": {"digit": "one"}}
