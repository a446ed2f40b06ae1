"""Asking until an answer comes: what is tried again, how long, and what ends an evaluation at once.

The first request is sent alone. Until it is answered nothing shows that there is an endpoint. So a wrong address, a
wrong key or an entry that the server refuses ends everything within seconds, with what to do about it.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.play.endpoint.client import Client
from manyturn.agents.play.endpoint.completion import NoCompletion, Unreadable
from manyturn.agents.play.endpoint.http_errors import (
    asked_wait,
    is_page,
    is_too_long,
    may_pass,
    reserves_too_much,
    way_out,
)
from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.agents.play.endpoint.token_counts import TokenCount, total
from manyturn.agents.play.episode import ContextFull
from manyturn.envs.users.endpoint.http_post import NoAnswer, Response, TooSlow, Unreachable
from manyturn.envs.users.endpoint.protocols.service import EndpointService, Manner

_FIRST_ATTEMPTS = 4  # of the request that shows whether there is an endpoint
_SILENCE = 30.0  # seconds between two lines about waiting, once the endpoint has answered
_LONG = 15.0  # seconds after which it is said that the first answer is still waited for
_UNTRUSTED = (
    "if the server is yours, name the file of its certificate, or of the authority that signed it, in SSL_CERT_FILE, "
    "and write the address with a name that the certificate has"
)


class CountedAnswer(Protocol):
    """An answer that was read."""

    @property
    def counted(self) -> TokenCount | None:
        """Tokens that the server counted."""
        ...

    def paid(self, charged: TokenCount | None) -> Self:
        """The answer with what it and the attempts before it took."""
        ...


A = TypeVar("A", bound=CountedAnswer)


class EndpointError(RuntimeError):
    """There is no endpoint that would answer; the text says what to do about it."""


class _TryAgain(Exception):
    """A fault that may pass.

    Args:
        wait: what the endpoint asks for, in seconds.
        advice: what to do about it if it does not pass.
    """

    def __init__(self, text: str, wait: float = 0.0, counted: TokenCount | None = None, advice: str = ""):
        super().__init__(text)
        self.wait, self.counted, self.advice = wait, counted, advice


def _not_there(service: EndpointService) -> str:
    return f"start the server, or give its address with {service.address} or {service.section}.base-url"


def _served_elsewhere(service: EndpointService) -> str:
    fix = f"{service.address} or {service.section}.base-url takes it up to and without {service.path}"
    return f"does this address serve {service.title}? {fix}, such as {service.example}"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Asking(Generic[A]):
    """Asks an endpoint with patience.

    Args:
        read: reads the body of an answer to a request, and raises Unreadable.
        manner: of all requests.

    Attributes:
        tell: shows a line to the user; by default on standard error.
    """

    def __init__(
        self, client: Client, options: Endpoint, read: Callable[[bytes, Mapping[str, Any]], A], manner: Manner
    ):
        self.client, self.options, self._read, self._manner = client, options, read, manner
        self.service = client.service
        self.tell: Callable[[str], None] = _tell
        self._answered = False
        self._last_notice = -_SILENCE
        self._first: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def ask(self, body: Mapping[str, Any], spread: Callable[[int], float]) -> A:
        """The answer to a request.

        Args:
            body: of the request; for a protocol of conversations, that of a chat completion.
            spread: attempt -> a number in [0, 1) that differs from episode to episode.

        Raises:
            ContextFull: the conversation is longer than the endpoint reads.
            EndpointError: the first request of all was not answered.
            EngineRefused: the endpoint says no to this request.
            EngineError: all attempts failed.
        """
        if not self._answered:
            async with self._alone():
                if not self._answered:
                    return await self._ask_first(body, spread)
        return await self._ask(body, spread, self.options.attempts)

    async def _ask_first(self, body: Mapping[str, Any], spread: Callable[[int], float]) -> A:
        slow = f"{self.client.where}: no answer yet after {_LONG:g} s; it has {self.options.timeout:g} s"
        reminder = asyncio.get_running_loop().call_later(_LONG, lambda: self.tell(slow))
        try:
            answer = await self._ask(body, spread, min(self.options.attempts, _FIRST_ATTEMPTS))
        except EngineError as error:
            raise EndpointError(str(error)) from error
        except ContextFull:
            self._answered = True
            raise
        finally:
            reminder.cancel()
        self._answered = True
        return answer

    async def _ask(self, body: Mapping[str, Any], spread: Callable[[int], float], attempts: int) -> A:
        charged: TokenCount | None = None
        for attempt in range(1, attempts + 1):
            try:
                answer = await self._once(body)
                return answer.paid(total(charged, answer.counted))
            except _TryAgain as fault:
                charged = total(charged, fault.counted)
                if attempt == attempts:
                    tries = f"{attempts} attempt{'s' * (attempts > 1)}"
                    message = f"{self.client.where}: {fault} ({tries})"
                    given_up = EngineError(f"{message}: {fault.advice}" if fault.advice else message)
                    given_up.usage = self.options.usage(charged)
                    raise given_up from fault
                wait = self.options.first_wait * 2 ** (attempt - 1)
                # At least half of the wait, so that many episodes that failed together do not come back together.
                wait = min(max(wait * (0.5 + 0.5 * spread(attempt)), fault.wait), self.options.longest_wait)
                self._say_wait(f"{fault}; attempt {attempt + 1} of {attempts} in {wait:.2g} s")
                await asyncio.sleep(wait)
        raise AssertionError("attempts are at least one")

    async def _once(self, body: Mapping[str, Any]) -> A:
        sent = self.service.request(body, self._manner)
        try:
            reply = await self.client.post(sent)
        except Unreachable as fault:
            if not self._answered:
                fix = _not_there(self.service)
                if "CERTIFICATE_VERIFY_FAILED" in str(fault):
                    fix = _UNTRUSTED
                elif self.client.url.scheme == "https" and "SSL" in str(fault):
                    plain = self.client.where.replace("https", "http", 1)
                    fix = f"if the server has no TLS, write {plain}; or {fix}"
                raise EngineRefused(f"{self.client.where} cannot be reached: {fault}: {fix}") from fault
            raise _TryAgain(str(fault)) from fault
        except TooSlow as fault:
            if not self._answered:
                option = f"{self.service.section}.timeout"
                raise EngineRefused(f"{self.client.where}: {fault}: give {option} more") from fault
            raise _TryAgain(str(fault)) from fault
        except NoAnswer as fault:
            raise _TryAgain(str(fault)) from fault
        text = self.client.short(reply.raw)
        if reply.status != 200:
            raise self._fault(reply, sent, text)
        try:
            return self._read(reply.raw, body)
        except Unreadable as fault:
            if not self._answered and is_page(reply.headers, reply.raw):
                fix = _not_there(self.service)
                raise EngineRefused(f"{self.client.where} answers with a web page: {fix}") from fault
            other = not self._answered and isinstance(fault, NoCompletion)
            advice = _served_elsewhere(self.service) if other else ""
            raise _TryAgain(f"{fault}: {text}", counted=fault.counted, advice=advice) from fault

    def _fault(self, reply: Response, body: Mapping[str, Any], text: str) -> Exception:
        """The error that a status other than 200 means."""
        status, where = reply.status, self.client.where
        if may_pass(status, reply.raw):
            return _TryAgain(f"status {status}: {text}", asked_wait(reply.headers))
        # Where not even the first request fits, no episode could begin.
        if is_too_long(status, reply.raw) and (self._answered or not reserves_too_much(reply.raw)):
            return ContextFull(f"the endpoint says: {text}")
        advice = way_out(status, reply.raw, body, where, service=self.service, has_key=self.client.has_key)
        message = "; ".join(part for part in (text, advice) if part)
        return EngineRefused(f"{where} refused with status {status}: {message}")

    def _say_wait(self, line: str) -> None:
        now = time.monotonic()
        if not self._answered or now - self._last_notice >= _SILENCE:
            self._last_notice = now
            self.tell(f"{self.client.where}: {line}")

    def _alone(self) -> asyncio.Lock:
        # A lock belongs to an event loop, while a policy may be used in several, one after the other.
        loop = asyncio.get_running_loop()
        if self._first is None or self._first[0] is not loop:
            self._first = (loop, asyncio.Lock())
        return self._first[1]
