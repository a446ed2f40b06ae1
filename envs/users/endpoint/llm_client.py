"""Client of a language model behind any OpenAI-compatible endpoint, with retries: for simulated users and judges."""

import asyncio
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.envs.users.endpoint.address import endpoint_address
from manyturn.envs.users.endpoint.chat_completion import Choice, EndpointRefused, Passing, complete

T = TypeVar("T")
Message = dict[str, Any]


class ModelOptions(Options):
    """Model that plays the user: its name, its address and time limits. The key comes from OPENAI_API_KEY."""

    model: str = Field(min_length=1)
    """The model's name at the endpoint."""
    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL."""
    temperature: float = Field(default=0.0, ge=0)
    seed: int = 0
    """Sent with the first attempt; each further attempt at a turn adds 1, so that a bad reply need not come again."""
    max_tokens: int = Field(default=512, ge=1)
    """Longest reply."""
    longest: int = Field(default=4000, ge=1)
    """Characters of the longest reply that is still taken for an utterance."""
    timeout: float = Field(default=45.0, gt=0)
    """Seconds for one turn, shared by its attempts and tool calls; keep it below the time that a worker has for one."""
    attempts: int = Field(default=3, ge=1)
    """How often a turn is tried before it is a UserError."""
    wait: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt; doubles from attempt to attempt."""
    stop: str = Field(default="###STOP###", min_length=1)
    """What the model writes to leave."""


class Unanswered(RuntimeError):
    """The model gave no answer that can be used, however often it was asked; the text goes on from "the model ..."."""


class Misread(Passing):
    """An answer that cannot be read; the next attempt shows the model what is wrong with it.

    Args:
        fault: what is wrong.
        mend: messages that say so.
    """

    def __init__(self, fault: str, mend: Sequence[Message]):
        super().__init__(fault)
        self.mend = list(mend)


class AskedModel:
    """A model that is asked until it answers.

    It blocks while the endpoint answers, and warns where that stops an event loop: the episodes of one process then
    take turns, and only worker processes let several go on at once.

    Attributes:
        name: tells models apart whose words or scores must not be mixed.

    Raises:
        ValueError: there is no address, or one that holds secrets.
    """

    def __init__(self, options: ModelOptions):
        self.options = options
        self._url = endpoint_address(options.base_url or os.environ.get("OPENAI_BASE_URL", ""), "base_url")
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        heat = f", temperature={options.temperature:g}" if options.temperature else ""
        self.name = f"model({options.model}{heat})"

    def deadline(self) -> float:
        """Time at which a turn that begins now must be over, by the monotonic clock."""
        _warn_if_others_wait()
        return time.monotonic() + self.options.timeout

    def ask(
        self,
        messages: Sequence[Message],
        deadline: float,
        read: Callable[[Choice], T],
        **offer: Any,
    ) -> T:
        """The model's answer to a conversation.

        Args:
            deadline: shared by all attempts.
            read: makes of an answer what is wanted; raises Passing, or Misread, for one that will not do.
            offer: further entries of the request, such as tools.

        Raises:
            Unanswered: every attempt failed, or the endpoint refuses.
        """
        options, shown = self.options, list(messages)
        body = {"model": options.model, "temperature": options.temperature, "max_tokens": options.max_tokens, **offer}
        for attempt in range(options.attempts):
            seconds = max(0.01, (deadline - time.monotonic()) / (options.attempts - attempt))
            try:
                request = {**body, "messages": shown, "seed": options.seed + attempt}
                choice = complete(self._url, self._key, request, seconds)
                if choice.finish == "length" or len(choice.text) > options.longest:
                    raise Passing(f"a reply that does not end within {options.max_tokens} tokens")
                return read(choice)
            except EndpointRefused as refusal:
                raise Unanswered(f"at {self._url} was refused: {refusal}") from refusal
            except Passing as fault:
                if attempt + 1 == options.attempts:
                    raise Unanswered(f"at {self._url} did not answer: {fault} ({options.attempts} attempts)") from fault
                if isinstance(fault, Misread):
                    shown = [*messages, *fault.mend]
                else:
                    time.sleep(min(options.wait * 2**attempt, max(0.0, deadline - time.monotonic()) / 2))
        raise AssertionError("attempts are at least one")


def _warn_if_others_wait() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    warnings.warn(
        "a model user stops this event loop while its endpoint answers, so no other episode of the process goes on: "
        "run the environments in worker processes (env.workers in training, --workers in an evaluation)",
        RuntimeWarning,
        stacklevel=1,
    )
