"""A user played by a language model behind any OpenAI-compatible endpoint."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from manyturn.envs.options import Options
from manyturn.envs.task import Task
from manyturn.envs.users.endpoint import Passing, Refused, complete
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError

_RULES = (
    "You play a person who talks to an assistant. Stay in the role. Say one short thing at a time, in plain words. "
    "Tell what you know only when you are asked for it, and invent nothing. When you have what you want, or see that "
    "you cannot get it, write {stop} and nothing else.\n\n{brief}"
)
_GREETING = "Hello. How can I help you?"


class ModelOptions(Options):
    """Which model plays the user, where it is, and how patient to be with it. The key comes from OPENAI_API_KEY."""

    model: str = Field(min_length=1)
    """The model's name at the endpoint."""
    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL."""
    temperature: float = Field(0.0, ge=0)
    seed: int = 0
    """Sent with the first attempt; each further attempt at a turn adds 1, so that a bad reply need not come again."""
    max_tokens: int = Field(512, ge=1)
    """Longest reply."""
    longest: int = Field(4000, ge=1)
    """Characters of the longest reply that is still taken for an utterance."""
    timeout: float = Field(45.0, gt=0)
    """Seconds for one turn, shared by its attempts; keep it below the time that a worker has for a turn."""
    attempts: int = Field(3, ge=1)
    """How often a turn is tried before it is a UserError."""
    wait: float = Field(1.0, ge=0)
    """Seconds before the second attempt; doubles from attempt to attempt."""
    stop: str = Field("###STOP###", min_length=1)
    """What the model writes to leave."""


class ModelUser(User):
    """Asks a model what the user says. A restored episode asks for the opening again before it continues.

    Args:
        brief: what the model is told about a task.
        options: model, endpoint and patience.
        rules: what stands before the brief, with ``{brief}`` and ``{stop}``; default: to stay in the role, tell only
            what is asked for, and leave with the stop mark.
        greeting: what the user is answering when it speaks first; None where the agent speaks first.

    Raises:
        ValueError: there is no address, or one that holds secrets.
    """

    def __init__(
        self,
        brief: Callable[[Task], str],
        options: ModelOptions,
        rules: str = _RULES,
        greeting: str | None = _GREETING,
    ):
        self.options = options
        self._brief, self._rules, self._greeting = brief, rules, greeting
        self._url = _address(options.base_url or os.environ.get("OPENAI_BASE_URL", ""))
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        heat = f", temperature={options.temperature:g}" if options.temperature else ""
        self.name = f"model({options.model}{heat})"
        self._messages: list[dict[str, str]] = []

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        system = self._rules.replace("{stop}", self.options.stop).replace("{brief}", self._brief(task))
        self._messages = [{"role": "system", "content": system}]
        return "" if self._greeting is None else self.hear(self._greeting).utterance

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        known = "".join(f"\n({name}: {value})" for name, value in cue.items() if value)
        asked = {"role": "user", "content": text.encode(errors="replace").decode() + known}
        reply = self._reply([*self._messages, asked])
        self._messages += [asked, {"role": "assistant", "content": reply}]
        words, stop, _ = reply.partition(self.options.stop)
        return Heard(words.strip(), done=bool(stop))

    def save(self) -> Any:
        return self._messages

    def load(self, state: Any) -> None:
        self._messages = state

    def _reply(self, messages: list[dict[str, str]]) -> str:
        options = self.options
        body = {"model": options.model, "messages": messages, "temperature": options.temperature}
        body["max_tokens"] = options.max_tokens
        ends = time.monotonic() + options.timeout
        for attempt in range(options.attempts):
            seconds = max(0.01, (ends - time.monotonic()) / (options.attempts - attempt))
            try:
                choice = complete(self._url, self._key, {**body, "seed": options.seed + attempt}, seconds)
                if choice.finish == "length" or len(choice.text) > options.longest:
                    raise Passing(f"a reply that does not end within {options.max_tokens} tokens")
                return choice.text
            except Refused as refusal:
                raise UserError(f"the model user at {self._url} was refused: {refusal}") from refusal
            except Passing as fault:
                if attempt + 1 == options.attempts:
                    told = f"{fault} ({options.attempts} attempts)"
                    raise UserError(f"the model user at {self._url} did not answer: {told}") from fault
                time.sleep(min(options.wait * 2**attempt, max(0.0, ends - time.monotonic()) / 2))
        raise AssertionError("attempts are at least one")


def _address(base: str) -> str:
    """The endpoint's address, checked here so that a slip is told at once and not at the first turn."""
    try:
        parts = urlsplit(base.strip())
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine, parts = False, urlsplit("")
    if not fine:
        raise ValueError("a model user needs the address of its endpoint: give base_url, or set OPENAI_BASE_URL")
    if parts.username or parts.password or parts.query:
        raise ValueError("the endpoint's address must hold no secrets: leave out user, password and query")
    return base.strip().rstrip("/")
