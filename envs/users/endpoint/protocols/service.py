"""The contract of what an endpoint is asked for: address, key, request, and an answer that comes in pieces."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from manyturn.envs.users.endpoint.protocols.event_stream import Assembly


class Manner(NamedTuple):
    """Further wishes of a request.

    Attributes:
        stream: ask for the answer as a stream of events.
        reasoning: ask for reasoning in a form that later requests can carry.
    """

    stream: bool = False
    reasoning: bool = False


class EndpointService(ABC):
    """A service of endpoints.

    Attributes:
        title: for messages.
        path: where it is served below the address.
        section: the options that set it, as the command line has them.
        address, key: environment variables with the address and the key.
        example: an address.
    """

    title: ClassVar[str]
    path: ClassVar[str]
    section: ClassVar[str] = "--endpoint"
    address: ClassVar[str] = "OPENAI_BASE_URL"
    key: ClassVar[str] = "OPENAI_API_KEY"
    example: ClassVar[str] = "http://127.0.0.1:8000/v1"

    def url(self, address: str) -> str:
        """The path of requests, below an address without a slash at its end."""
        return address + self.path

    def base(self, written: str) -> str:
        """The address without the path of the service."""
        return written.rstrip("/").removesuffix(self.path)

    def headers(self, key: str) -> dict[str, str]:
        """The headers that carry a key; without one, those that every request has."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        """The body of a request as the service takes it."""

    @abstractmethod
    def assembly(self, longest: int) -> Assembly:
        """The reader that makes one answer of a stream of events, at most so many characters long."""
