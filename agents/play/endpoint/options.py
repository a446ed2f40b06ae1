"""Options of an endpoint: address, sampling and prices."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.options.options import Options, set_values

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OURS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "accept-encoding", "connection"})
_SECTION = "--endpoint"
_HARMLESS = frozenset(
    {  # options whose values may stand in a file
        *("base_url", "stream", "timeout", "attempts", "first_wait", "longest_wait", "concurrency", "length_field"),
        *("price_in", "price_out", "price_cached"),
    }
)
_FIXED = {
    "model": "it is the word after the colon",
    "messages": "they are the episode",
    "tools": "choose them with agent.format = native_tools",
    "stream": "set endpoint.stream",
    "stream_options": "set endpoint.stream",
    "n": "one reply is played: ask for several episodes with --repeats",
    **{name: f"set sampling.{name}" for name in ("temperature", "top_p", "stop", "seed", "max_tokens")},
    "max_completion_tokens": "set sampling.max_tokens and endpoint.length_field",
    "max_output_tokens": "set sampling.max_tokens",
}


def _left_out(value: Any) -> Any:
    """The command line has no null: the word none leaves a field out of the request."""
    return None if value == "none" else value


def _table(value: Any) -> Any:
    """A table that was written as JSON; one in TOML is a table already."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError('write a table, such as {name = "value"}, or a JSON object') from None


def without_secrets(words: Sequence[str], secrets: Iterable[str] = ()) -> list[str]:
    """The words of a command line as they may be kept: of an endpoint only what is known to be harmless.

    >>> without_secrets(["evaluate", "--endpoint", "{...}", "--endpoint-headers.Y=b", "--endpoint.timeout", "9"])
    ['evaluate', '--endpoint', '***', '--endpoint-headers.Y=***', '--endpoint.timeout', '9']

    Args:
        secrets: values that are hidden wherever they stand.
    """
    shown, hides = list[str](), False
    for word in words:
        name, equals, _ = word.partition("=")
        is_secret = name.startswith(_SECTION) and name.removeprefix(_SECTION)[1:].replace("-", "_") not in _HARMLESS
        shown.append("***" if hides else f"{name}=***" if is_secret and equals else word)
        hides = is_secret and not equals  # also if it was hidden itself: it may have been the value of another option
    for secret in sorted(secrets, key=len, reverse=True):
        shown = [word.replace(secret, "***") for word in shown]
    return shown


class EndpointSampling(Options):
    """Sampling at an endpoint. The server decides whatever is left out."""

    temperature: Annotated[float | None, BeforeValidator(_left_out)] = Field(default=1.0, ge=0)
    """Randomness of the replies; ``none`` leaves it out of the request. anthropic:MODEL gets it only if it is given,
    because newer models refuse it."""
    max_tokens: int = Field(default=4096, ge=1)
    """Longest reply, in tokens. Reasoning counts, also where the server does not show it."""
    top_p: Annotated[float | None, BeforeValidator(_left_out)] = Field(default=None, gt=0, le=1)
    """Draw from the likeliest tokens that have this probability together. Default: not in the request."""
    stop: tuple[str, ...] = Field(default=(), max_length=16)
    """Texts that end a reply. openai-responses:MODEL has none."""
    seed: bool = True
    """Send a seed that derives from the evaluation's seed, the task, the attempt and the turn. Only openai:MODEL has
    seeds."""
    extra_body: Annotated[dict[str, Any], BeforeValidator(_table)] = {}
    """Further entries of the request, such as {reasoning_effort = "low"}."""

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("extra_body")
    @classmethod
    def _adds_only(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value.keys() & _FIXED.keys():
            raise ValueError(f"{name} has its own place: {_FIXED[name]}")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"a request is JSON, and this is not: {error}") from None
        return value

    def fields(self, length_field: str, seed: int) -> dict[str, Any]:
        """The entries of a request.

        Args:
            length_field: what the server calls the longest reply.
            seed: of the reply.
        """
        chosen = {"temperature": self.temperature, "top_p": self.top_p, "stop": list(self.stop) or None}
        drawn = {name: value for name, value in chosen.items() if value is not None}
        return {**drawn, length_field: self.max_tokens, **({"seed": seed} if self.seed else {}), **self.extra_body}


class EndpointLimits(Options):
    """Address, patience and prices of an endpoint."""

    moved: ClassVar[Mapping[str, str]] = {name: f"sampling.{name}" for name in EndpointSampling.model_fields} | {
        "system": "agent.system",
        "reasoning_effort": "sampling.extra_body",
    }

    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL, or for anthropic:MODEL ANTHROPIC_BASE_URL."""
    stream: bool = False
    """Ask for replies as streams of events, for servers that answer in no other way or end long requests. A stream is
    read also where none was asked for."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds that one request may take."""
    attempts: int = Field(default=6, ge=1)
    """How often a request is tried before the episode ends in an error."""
    first_wait: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt; doubles from attempt to attempt."""
    longest_wait: float = Field(default=60.0, ge=0)
    """Most seconds between attempts, even if the endpoint asks for more."""
    concurrency: int = Field(default=16, ge=1)
    """Requests under way at the same time."""
    length_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """openai:MODEL's field for the longest reply. Default: max_completion_tokens at api.openai.com, else max_tokens."""
    price_in: float | None = Field(default=None, ge=0)
    """USD for a million tokens of prompts. With price_out, the cost of the evaluation is counted."""
    price_out: float | None = Field(default=None, ge=0)
    """USD for a million tokens of replies, reasoning included."""
    price_cached: float | None = Field(default=None, ge=0)
    """USD for a million tokens of prompts that the server had in its cache. Default: price_in."""

    @model_validator(mode="after")
    def _whole_prices(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("price_in and price_out belong together: give both, in USD for a million tokens")
        if self.price_cached is not None and self.price_in is None:
            raise ValueError("price_cached has no effect without price_in and price_out: give both")
        return self

    def length_name(self, host: str) -> str:
        """The field for the longest reply at a host.

        >>> Endpoint().length_name("api.openai.com"), Endpoint().length_name("127.0.0.1")
        ('max_completion_tokens', 'max_tokens')
        """
        return self.length_field or ("max_completion_tokens" if host == "api.openai.com" else "max_tokens")

    def usage(self, charged: TokenCount | None, cut: bool | None = None) -> Usage:
        """Usage of requests, with its cost in USD if prices are known.

        Args:
            cut: whether the reply was.
        """
        return Usage(cut=cut) if charged is None else Usage(charged.prompt, charged.reply, cut, self._cost(charged))

    def _cost(self, tokens: TokenCount) -> float | None:
        if self.price_in is None or self.price_out is None:
            return None
        price_cached = self.price_in if self.price_cached is None else self.price_cached
        prompt = (tokens.prompt - tokens.cached) * self.price_in + tokens.cached * price_cached
        return (prompt + tokens.reply * self.price_out) / 1e6


class Endpoint(EndpointLimits):
    """Connection to an endpoint. The key comes from OPENAI_API_KEY, or for anthropic:MODEL from ANTHROPIC_API_KEY. It
    is shown nowhere."""

    headers: Annotated[dict[str, SecretStr], BeforeValidator(_table)] = {}
    """Further headers, such as {api-key = "$AZURE_KEY"}; a value $NAME is that environment variable. Shown nowhere."""

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        resolved = {}
        for name, secret in headers.items():
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _OURS:
                raise ValueError(f"{name!r:.80} cannot be set: leave it out")
            value = secret.get_secret_value()
            if variable := _VARIABLE.fullmatch(value):
                value = os.environ.get(variable[1], "").strip()
                if not value:
                    raise ValueError(f"{name} is the environment variable {variable[1]}, which is not set")
            if not (value.isascii() and value.isprintable()):
                raise ValueError(f"the value of {name} holds characters that no header has")
            resolved[name] = SecretStr(value)
        return resolved


class NamedHeaders(EndpointLimits):
    """Connection to an endpoint as a file holds it. The key comes from OPENAI_API_KEY, or for anthropic:MODEL from
    ANTHROPIC_API_KEY; no secret is in the file."""

    headers: Annotated[dict[str, str], BeforeValidator(_table)] = {}
    """Further headers, such as {api-key = "$AZURE_KEY"}: each value names an environment variable."""

    @field_validator("headers")
    @classmethod
    def _name_variables(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _VARIABLE.fullmatch(value):
                raise ValueError(
                    f"the value of {name} would stand in the run's files: put it into an environment variable, and "
                    "write $NAME"
                )
        return headers

    def connection(self) -> Endpoint:
        """The endpoint with the values of the variables. Raises ConfigError where one is not set."""
        return Endpoint.model_validate(set_values(self))
