"""A policy behind any endpoint that speaks the OpenAI chat completions protocol, for evaluation.

Messages go out and text comes back, so there is no token ledger and nothing can be learnt from such episodes.
"""

import asyncio
import email.utils
import json
import math
import os
import ssl
import time
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from manyturn.agents.agent import AgentConfig
from manyturn.agents.context import CONTEXTS, Exchange
from manyturn.agents.engine import EngineError, Sampling
from manyturn.agents.episode import Act, ContextFull
from manyturn.agents.episode_key import EpisodeKey
from manyturn.agents.ledger import Ledger
from manyturn.agents.template import Message, well_formed
from manyturn.agents.usage import Usage
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.options import Options
from manyturn.envs.hosting.host import Answer
from manyturn.envs.hosting.seats import Seat

try:
    import httpx
except ImportError as error:
    raise ImportError("an openai: policy needs the package httpx: pip install 'manyturn[openai]'") from error

_LONGEST_ANSWER = 4 * 2**20  # bytes
_TRY_AGAIN = frozenset({408, 409, 425, 429})  # and everything from 500
_BROKEN_OFF = ("error", "abort")  # how servers that failed in the middle of a reply say so, under status 200
_TOO_LONG = ("context_length_exceeded", "maximum context length", "maximum model length")


class Endpoint(Options):
    """How an endpoint is reached. The key comes from OPENAI_API_KEY and is shown nowhere."""

    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default: OPENAI_BASE_URL."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds that one request may take."""
    attempts: int = Field(default=6, ge=1)
    """How often a request is tried before the episode ends in an error."""
    first_wait: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt; doubles from attempt to attempt."""
    longest_wait: float = Field(default=60.0, ge=0)
    """Most seconds between attempts, even if the endpoint asks for more."""
    concurrency: int = Field(default=16, ge=1)
    """Requests under way at the same time."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The request's field for the longest reply; newer models of OpenAI want max_completion_tokens."""


class _TryAgain(Exception):
    """A fault that may pass; ``wait`` is what the endpoint asks for, in seconds."""

    def __init__(self, text: str, wait: float = 0.0):
        super().__init__(text)
        self.wait = wait


class OpenAIPolicy:
    """Plays by asking an endpoint.

    Args:
        model: the model's name at the endpoint.
        config: system text, views, reply format and context.
        sampling: temperature and longest reply; the seed sent is derived from the episode's key.
        endpoint: where it is and how patient to be.

    Raises:
        ValueError: no address is known, or address or key cannot be right.
    """

    def __init__(self, model: str, config: AgentConfig, sampling: Sampling, endpoint: Endpoint | None = None):
        self.name, self.model, self.config, self.sampling = model, model, config, sampling
        self.format, self.context = config.reply_format, CONTEXTS.apply(config.context)
        self.endpoint = endpoint or Endpoint()
        self._url = _address(self.endpoint.base_url or os.environ.get("OPENAI_BASE_URL", ""))
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("OPENAI_API_KEY holds characters that no key has")
        self._tls = ssl.create_default_context()
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def player(self, key: EpisodeKey, instructions: str) -> "OpenAIPlayer":
        return OpenAIPlayer(self, key, instructions)

    async def complete(self, messages: list[Message], key: EpisodeKey, turn: int) -> tuple[str, Usage]:
        """The endpoint's reply.

        Raises:
            ContextFull: the endpoint says that the messages are too long.
            EngineError: it refused, or all attempts failed.
        """
        body = {
            "model": self.model,
            "messages": [{role: well_formed(text) for role, text in message.items()} for message in messages],
            "temperature": self.sampling.temperature,
            self.endpoint.length_field: self.sampling.max_tokens,
            "seed": key.noise_seed(turn) % 2**31,
        }
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                return await self._ask(body)
            except _TryAgain as fault:
                if attempt == self.endpoint.attempts:
                    raise EngineError(f"{self.where}: {self._hide(str(fault))} ({attempt} attempts)") from fault
                wait = self.endpoint.first_wait * 2 ** (attempt - 1)
                # At least half of the wait, so that many episodes that failed together do not come back together.
                wait *= 0.5 + 0.5 * generator("backoff", *key, turn, attempt).random()
                await asyncio.sleep(min(max(wait, fault.wait), self.endpoint.longest_wait))
        raise AssertionError("attempts are at least one")

    async def _ask(self, body: Mapping[str, Any]) -> tuple[str, Usage]:
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        try:
            # A client for each request: nothing is left open when the event loop ends, and a new connection costs
            # little next to a completion.
            async with (
                self._place(),
                asyncio.timeout(self.endpoint.timeout),
                httpx.AsyncClient(verify=self._tls, timeout=self.endpoint.timeout) as client,
                client.stream("POST", self._url, json=body, headers=headers) as response,
            ):
                # A few kilobytes that are packed may be gigabytes, and unpacking them holds up the event loop.
                if (coding := response.headers.get("content-encoding", "identity")) != "identity":
                    raise _TryAgain(f"the answer comes as {coding:.40}, though it was asked for as it is")
                raw = bytearray()
                async for chunk in response.aiter_raw():
                    raw += chunk
                    if len(raw) > _LONGEST_ANSWER:
                        raise _TryAgain(f"the answer is longer than {_LONGEST_ANSWER} bytes")
        except TimeoutError as error:
            raise _TryAgain(f"no answer within {self.endpoint.timeout:g} s") from error
        # A redirect is not followed, but its address is parsed: a broken one is no HTTPError.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _TryAgain(f"{type(error).__name__}: {error}") from error
        return self._judge(response.status_code, response.headers, bytes(raw))

    def _judge(self, status: int, headers: Mapping[str, str], raw: bytes) -> tuple[str, Usage]:
        if status in _TRY_AGAIN or status >= 500:
            raise _TryAgain(f"status {status}: {self._short(raw)}", _asked_wait(headers))
        if status != 200:
            text = self._short(raw)
            if status in (400, 413) and any(sign in raw.decode(errors="replace") for sign in _TOO_LONG):
                raise ContextFull(self._hide(f"the endpoint says: {text}"))
            raise EngineError(self._hide(f"{self.where} refused with status {status}: {text}"))
        try:
            answer = json.loads(raw)
            choice = answer["choices"][0]
            text, finish = choice["message"]["content"], choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise _TryAgain(f"not a chat completion: {self._short(raw)}") from error
        if not isinstance(text, str):
            raise _TryAgain(f"a completion without text: {self._short(raw)}")
        if answer.get("error") or finish in _BROKEN_OFF:
            raise _TryAgain(f"a completion that broke off: {self._short(raw)}")
        return well_formed(text), _usage(answer.get("usage"), finish)

    def _place(self) -> asyncio.Semaphore:
        # A semaphore belongs to an event loop, while a policy may be used in several, one after the other.
        loop = asyncio.get_running_loop()
        if self._places is None or self._places[0] is not loop:
            self._places = (loop, asyncio.Semaphore(self.endpoint.concurrency))
        return self._places[1]

    @property
    def concurrency(self) -> int:
        """Episodes that can wait for a reply at the same time."""
        return self.endpoint.concurrency

    @property
    def where(self) -> str:
        """The endpoint's address, which holds no secrets."""
        port = f":{self._url.port}" if self._url.port else ""
        return f"{self._url.scheme}://{self._url.host}{port}{self._url.path.removesuffix('/chat/completions')}"

    def _short(self, raw: bytes) -> str:
        """The beginning of an answer on one line, without what a terminal would obey."""
        # The key is hidden first: cut in two it would not be found.
        text = " ".join(self._hide(raw.decode(errors="replace"))[:2000].split())
        text = "".join(char if char.isprintable() else "\ufffd" for char in text)
        return text[:300] + ("…" if len(text) > 300 else "")

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


class OpenAIPlayer:
    """The endpoint's model within one episode.

    Attributes:
        usage: for each turn what the endpoint reported.
    """

    def __init__(self, policy: OpenAIPolicy, key: EpisodeKey, instructions: str):
        self._policy, self._key = policy, key
        self._system = policy.config.system(instructions)
        self._past: list[Exchange] = []
        self.ledger: Ledger | None = None
        self.usage: list[Usage] = []

    async def act(self, step: Answer, seat: Seat) -> Act:
        config = self._policy.config
        self._check_room()
        view = config.view(step)
        text, usage = await self._policy.complete(self._messages(view), self._key, len(self._past))
        self._past.append((view, text))
        self.usage.append(usage)
        action, valid = self._policy.format.parse(text)
        return Act(text, action, valid, usage=usage)

    def leave(self) -> None:
        """Nothing is kept."""

    def _messages(self, view: str) -> list[Message]:
        shown, last = self._policy.context.shown(self._past, view)
        messages = [{"role": "system", "content": self._system}] if self._system else []
        for observation, said in shown:
            messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": said}]
        return [*messages, {"role": "user", "content": last}]

    def _check_room(self) -> None:
        """Hold ``max_context`` as far as it is known: the next prompt is longer than the last prompt and reply."""
        config = self._policy.config
        last = self.usage[-1] if self.usage else Usage()
        if last.prompt_tokens is None or last.reply_tokens is None or not self._policy.context.appends:
            return
        so_far = last.prompt_tokens + last.reply_tokens
        if so_far + self._policy.sampling.max_tokens > config.max_context:
            raise ContextFull(
                f"{so_far} tokens so far and a reply of up to {self._policy.sampling.max_tokens} exceed "
                f"agent.max_context = {config.max_context}"
            )


def _address(base: str) -> httpx.URL:
    try:
        url = httpx.URL(base.strip().rstrip("/") + "/chat/completions")
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("no address of an endpoint: set OPENAI_BASE_URL, such as http://127.0.0.1:8000/v1")
    if url.userinfo or url.query:  # httpx writes addresses to its log
        raise ValueError("the endpoint's address must hold no secrets: leave out user, password and query")
    return url


def _usage(reported: Any, finish: Any) -> Usage:
    """What the endpoint says that a reply took, as far as that makes sense."""
    cut = finish == "length" if isinstance(finish, str) else None
    try:
        counts = reported["prompt_tokens"], reported["completion_tokens"]
    except (LookupError, TypeError):
        return Usage(cut=cut)
    return Usage(*counts, cut) if all(type(count) is int and count >= 0 for count in counts) else Usage(cut=cut)


def _asked_wait(headers: Mapping[str, str]) -> float:
    """Seconds that a Retry-After header asks for, given as a number or a date; 0 if it says nothing sensible."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
