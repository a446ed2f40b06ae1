"""Replies used as actions, unchanged."""

from typing import Literal

from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.options.registry import Named


class FreeTextConfig(Named):
    name: Literal["free_text"] = "free_text"


@FORMATS.register(FreeTextConfig)
class FreeText(ReplyFormat):
    """The full reply is the action."""

    def __init__(self, config: FreeTextConfig):
        """There is nothing to choose."""

    def hint(self) -> str:
        return ""

    def parse(self, text: str) -> Parsed:
        action = text.strip()
        return Parsed(action, bool(action))

    def render(self, action: str) -> str:
        return action
