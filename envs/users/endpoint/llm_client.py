"""Client of a language model behind an endpoint, with retries: for simulated users and judges."""

import asyncio
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import Options
from manyturn.envs.users.endpoint.address import endpoint_address
from manyturn.envs.users.endpoint.chat_completion import Access, Choice, EndpointRefused, Passing, complete
from manyturn.envs.users.endpoint.protocols.registry import OPENAI, PROTOCOLS

T = TypeVar("T")
Message = dict[str, Any]


class ModelOptions(Options):
    """Model that plays the user: its name, its address and time limits. The key comes from OPENAI_API_KEY, or for the
    protocol anthropic from ANTHROPIC_API_KEY."""

    model: str = Field(min_length=1)
    """The model's name at the endpoint."""
    protocol: Literal["openai", "openai-responses", "anthropic"] = "openai"
    """Protocol of the endpoint: chat completions, Responses or Messages."""
    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL, or for anthropic ANTHROPIC_BASE_URL."""
    stream: bool = False
    """Ask for replies as streams of events, for servers that answer in no other way."""
    temperature: float = Field(default=0.0, ge=0)
    """Randomness of the replies. Anthropic's newer models refuse it, so anthropic gets it only if it is given."""
    seed: int = 0
    """Sent with the first attempt; each further attempt at a turn adds 1, so that a bad reply need not come again. Only
    the protocol openai has seeds."""
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

    @model_validator(mode="after")
    def _protocol_has_a_seed(self) -> Self:
        if "seed" in self.model_fields_set and "seed" in PROTOCOLS[self.protocol].lacks:
            raise ValueError(f"seed has no effect: {PROTOCOLS[self.protocol].title} has none: leave it out")
        return self

    def drawing(self) -> dict[str, Any]:
        """Sampling settings, as entries of a request."""
        given = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        unset = PROTOCOLS[self.protocol].unset - self.model_fields_set
        return {name: value for name, value in given.items() if name not in unset}


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
        protocol = PROTOCOLS[options.protocol]
        url = endpoint_address(options.base_url or os.environ.get(protocol.address, ""), "base_url", protocol)
        self._access = Access(protocol, url, os.environ.get(protocol.key, "").strip(), options.stream)
        heat = f", temperature={options.temperature:g}" if options.temperature else ""
        spoken = "" if options.protocol == OPENAI else f"{options.protocol}:"
        self.name = f"model({spoken}{options.model}{heat})"

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
        body = {"model": options.model, **options.drawing(), **offer}
        seeded = "seed" not in PROTOCOLS[options.protocol].lacks
        for attempt in range(options.attempts):
            seconds = max(0.01, (deadline - time.monotonic()) / (options.attempts - attempt))
            try:
                request = {**body, "messages": shown, **({"seed": options.seed + attempt} if seeded else {})}
                choice = complete(self._access, request, seconds)
                if choice.finish == "length" or len(choice.text) > options.longest:
                    raise Passing(f"a reply that does not end within {options.max_tokens} tokens")
                return read(choice)
            except EndpointRefused as refusal:
                raise Unanswered(f"at {self._access.url} was refused: {refusal}") from refusal
            except Passing as fault:
                if attempt + 1 == options.attempts:
                    raise Unanswered(
                        f"at {self._access.url} did not answer: {fault} ({options.attempts} attempts)"
                    ) from fault
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
