"""Actions between tags."""

import re
from typing import Literal

from pydantic import Field, field_validator

from manyturn.agents.text.reasoning import TAGS
from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.options.registry import Named

_THOUGHTS = 512  # tokens of reasoning


class TaggedConfig(Named):
    name: Literal["tagged"] = "tagged"
    tag: str = Field(default="action", pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    """Name of the tag."""
    think: bool = False
    """Ask for reasoning between <think> tags first."""

    @field_validator("tag")
    @classmethod
    def _acts(cls, tag: str) -> str:
        if tag.lower() in TAGS:
            raise ValueError(f"<{tag}> marks reasoning, which never acts: choose another tag, such as action")
        return tag


@FORMATS.register(TaggedConfig)
class Tagged(ReplyFormat):
    """The action is between tags: ``<action>go north</action>``; the last such pair counts.

    A reply without a closed pair is passed on unchanged, so that the environment answers it like any nonsense.
    """

    def __init__(self, config: TaggedConfig):
        self.tag, self.thinks = config.tag, config.think

    def hint(self) -> str:
        first = "Think first, between <think> and </think>. Then give" if self.thinks else "Answer with"
        return f"{first} exactly one action, between <{self.tag}> and </{self.tag}>."

    def reply_tokens(self, *, tools: bool) -> int:
        return super().reply_tokens(tools=tools) + 64 + (_THOUGHTS if self.thinks else 0)

    def parse(self, text: str) -> Parsed:
        # The last opening tag before the last closing one: a quoted or unclosed earlier tag must not swallow the rest.
        head, close, _ = text.rpartition(f"</{self.tag}>")
        _, opening, action = head.rpartition(f"<{self.tag}>")
        action = re.sub(r"\s+", " ", action).strip()
        if close and opening and action:
            return Parsed(action, format_valid=True)
        return Parsed(text.strip(), format_valid=False)

    def render(self, action: str) -> str:
        return f"<{self.tag}>{action}</{self.tag}>"
