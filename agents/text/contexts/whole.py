"""The full conversation."""

from collections.abc import Sequence
from typing import Literal

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.context import CONTEXTS, Context, Exchange, Memory
from manyturn.envs.contract.options.registry import Named


class WholeConfig(Named):
    name: Literal["whole"] = "whole"


@CONTEXTS.register(WholeConfig)
class WholeConversation(Context):
    """The full conversation: each token of an episode is computed once."""

    appends = True

    def __init__(self, config: WholeConfig):
        """There is nothing to choose."""

    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        return list(past), observation

    def start(self, template: ChatTemplate, system: str) -> Memory:
        return WholeMemory(template, system)

    def check(self, template: ChatTemplate) -> None:
        template.check()


class WholeMemory:
    """Every turn, appended: a turn's prompt and reply are the beginning of the next turn's prompt."""

    def __init__(self, template: ChatTemplate, system: str):
        self._template, self._system = template, system
        self._ids: list[int] = []
        self._ended = True

    def prompt(self, observation: str) -> list[int]:
        if not self._ids:
            return self._template.opening(self._system, observation)
        return self._ids + self._template.bridge(observation, ended=self._ended)

    def add_reply(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        self._ids = [*prompt_ids, *reply_ids]
        self._ended = bool(reply_ids) and reply_ids[-1] in self._template.end_ids
