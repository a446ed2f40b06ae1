"""A text environment whose agent talks to a user that an argument swaps."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.options.options import Options, unknown
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.llm_user import ModelUser
from manyturn.envs.users.protocol import User
from manyturn.envs.users.recording import RecordedUser, ReplayOptions, ReplayUser


class NoOptions(Options):
    """There is nothing to choose: any option is an error."""


class Maker(NamedTuple):
    """Constructor of a kind of user from its options."""

    options: type[Options]
    make: Callable[[Any], User]


class UserEnv(TextEnv):
    """Base of environments with a user. Override ``makers`` and ``brief`` besides what ``TextEnv`` asks for.

    ``begin`` calls ``self.meet(task)`` for the user's first words, ``respond`` calls ``self.user.hear(text)`` where the
    agent speaks to the user. A user with tools of its own asks for calls by ``Heard.calls``; ``tool_use.spoken`` runs
    them until it speaks. ``info["user"]`` says who the user was, because scores with different users are different
    measurements.

    Args:
        user: a kind, such as ``"agenda"``, or a kind with its options, such as ``{"kind": "agenda", "noise": 0.1}``;
            default: the first of ``makers``. Every environment also takes ``{"kind": "model", "model": NAME,
            "base_url": URL}`` and ``{"kind": "replay", "file": PATH}``; ``"record": PATH`` with any kind keeps what
            the user says, for replay.

    Attributes:
        user: who plays the user.
    """

    def makers(self) -> Mapping[str, Maker]:
        """The environment's own users by kind, the default first."""
        raise NotImplementedError(f"{type(self).__name__} has a user: override makers()")

    def brief(self, task: Task) -> str:
        """Prompt of a language model that plays the user: who it is, what it wants, knows and hides."""
        raise NotImplementedError(f"{type(self).__name__} has no words for a model user: override brief()")

    def state(self) -> Any:
        """The environment's own state inside the episode, without its user's, as plain values."""
        raise NotImplementedError(f"{type(self).__name__} has a user: override state() and set_state()")

    def set_state(self, state: Any) -> None:
        """Inverse of ``state``."""
        raise NotImplementedError(f"{type(self).__name__} has a user: override state() and set_state()")

    def anchor_text(self) -> str:
        """Last words of the user; the same words hardly ever come twice."""
        return self.observation

    def notes(self) -> Mapping[str, Any]:
        """Extra entries of ``info`` besides the stable keys; an override adds to them."""
        return {"user": self.user.name}

    def __init__(
        self,
        split: str = "train",
        user: str | Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        difficulty: str | None = None,
    ):
        super().__init__(split, max_turns, difficulty)
        own = self.makers()
        makers = {"model": Maker(ModelOptions, self._model), "replay": Maker(ReplayOptions, ReplayUser), **own}
        self.user = make_user(next(iter(own)) if user is None else user, makers)
        self._user_rng: np.random.Generator | None = None
        self.waits_outside = isinstance(self.user, ModelUser)

    def _model(self, options: ModelOptions) -> User:
        return ModelUser(self.brief, options)

    def meet(self, task: Task) -> str:
        """The user's first words. Its chance is its own, so that another user leaves the rest of the world as it is."""
        self._user_rng = generator("user", self._seed)
        return self.user.begin(task, self._user_rng)

    def save(self) -> bytes:
        rng = self._user_rng and self._user_rng.bit_generator.state
        return json.dumps({"user": self.user.save(), "rng": rng, "own": self.state()}).encode()

    def load(self, data: bytes) -> None:
        saved = json.loads(data)
        self.user.load(saved["user"])
        if self._user_rng is not None:
            self._user_rng.bit_generator.state = saved["rng"]
        self.set_state(saved["own"])


def make_user(choice: str | Mapping[str, Any], makers: Mapping[str, Maker]) -> User:
    """The user that an argument names.

    Args:
        choice: a kind, or ``{"kind": ..., **options}``.
        makers: kind -> how it is made.

    Raises:
        ValueError: no such kind, or an option that it does not have.
    """
    options: dict[str, Any] = {"kind": choice} if isinstance(choice, str) else dict(choice)
    kind, record = options.pop("kind", None), options.pop("record", None)
    if kind not in makers:
        raise ValueError(unknown("user", str(kind), makers))
    maker = makers[kind]
    user = maker.make(maker.options(**options))
    return user if record is None else RecordedUser(user, record)
