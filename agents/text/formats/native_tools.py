"""Actions as tool calls of the chat completions protocol."""

from typing import Any, Literal

from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class NativeToolsConfig(Named):
    name: Literal["native_tools"] = "native_tools"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return (
            "agent.format = native_tools is a part of requests to an endpoint, and a model that learns has none: "
            "set agent.format to tool_call"
        )


@FORMATS.register(NativeToolsConfig)
class NativeTools(ReplyFormat):
    """The environment's tools go out as ``tools`` of a request, and a reply's ``tool_calls`` are the action.

    For endpoints and environments with tools. A reply without a call is said to the environment as it is.
    """

    by_request = True

    def __init__(self, config: NativeToolsConfig):
        """There is nothing to choose."""

    def hint(self) -> str:
        return ""

    def parse(self, text: str) -> Parsed:
        speech = text.strip()
        return Parsed(speech, bool(speech))

    def render(self, action: str) -> str:
        return action
