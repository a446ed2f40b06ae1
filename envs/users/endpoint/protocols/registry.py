"""Words that name a model of an endpoint: PROTOCOL:MODEL."""

from collections.abc import Mapping

from manyturn.envs.users.endpoint.protocols.chat_completions import ChatCompletions
from manyturn.envs.users.endpoint.protocols.messages import Messages
from manyturn.envs.users.endpoint.protocols.protocol import EndpointProtocol
from manyturn.envs.users.endpoint.protocols.responses import Responses

OPENAI = "openai"
PROTOCOLS: Mapping[str, EndpointProtocol] = {
    OPENAI: ChatCompletions(),
    "openai-responses": Responses(),
    "anthropic": Messages(),
}
"""Word before the colon -> protocol."""
ENDPOINT_WORD = rf"(?:{'|'.join(PROTOCOLS)}):.+"
"""Regular expression of a word that names a model of an endpoint."""


def is_endpoint(word: str) -> bool:
    """True if a word begins as that of a model of an endpoint.

    >>> is_endpoint("anthropic:claude"), is_endpoint("past:3")
    (True, False)
    """
    return word.partition(":")[0] in PROTOCOLS and ":" in word


def endpoint_model(word: str) -> tuple[str, str]:
    """Protocol and model of a word. Raises ValueError where no model is named.

    >>> endpoint_model("openai:meta/llama:8b")
    ('openai', 'meta/llama:8b')
    """
    protocol, _, model = word.partition(":")
    if not model:
        raise ValueError(f"which model of the endpoint? Write {protocol}:MODEL")
    return protocol, model
