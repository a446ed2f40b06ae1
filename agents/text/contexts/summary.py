"""A conversation that the policy itself summarises where it would outgrow the context.

    prompt   system text, first observation, newest summary, and what has been seen and said since
    summary  an inner turn, due where the next action, with room for a later summary, would exceed ``agent.max_context``

Source: SUPO (summarization-augmented policy optimization), arXiv 2510.06727. The policy writes summaries and learns
them, by the credit of their episodes. Episodes that end at the limit of turns or of summaries are left out of the
update (``credit.truncated = "left_out"``).

Differences: the paper's conversation goes on after the summary with the first prompt and the summary alone. Here the
observation that is to be answered follows, so that it need not be in the summary.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.context import CONTEXTS, Context, Exchange, Memory, ShownMemory
from manyturn.agents.text.contexts.whole import WholeMemory
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class SummaryConfig(Named):
    name: Literal["summary"] = "summary"
    tokens: int = Field(default=128, ge=1)
    """Most tokens of a summary."""
    summaries: int = Field(default=4, ge=1)
    """Most summaries of an episode; one that needs more is truncated."""
    request: Annotated[str, Field(min_length=1)] = "Summarise what you need to go on."
    """Text that asks for a summary."""
    heading: Annotated[str, Field(min_length=1)] = "Your summary:"
    """Text before the summary in later prompts."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        needed = self.tokens + run.sampling.max_tokens
        if needed < run.agent.max_context:
            return None
        return (
            f"agent.context.tokens = {self.tokens} and sampling.max_tokens = {run.sampling.max_tokens} leave no room "
            f"for a prompt in agent.max_context = {run.agent.max_context}: lower them, or raise agent.max_context"
        )


@CONTEXTS.register(SummaryConfig)
class Summarised(Context):
    """The first observation, the policy's own summary, and all turns since it."""

    summarises = True

    def __init__(self, config: SummaryConfig):
        self.config = config

    @property
    def texts(self) -> Sequence[str]:
        return (self.config.request, self.config.heading)

    def shown(self, past: Sequence[Exchange], observation: str) -> tuple[list[Exchange], str]:
        return list(past), observation

    def start(self, template: ChatTemplate, system: str) -> "SummaryMemory":
        return SummaryMemory(self.config, template, lambda: WholeMemory(template, system))

    def rendered(self, template: ChatTemplate, system: str) -> "SummaryMemory":
        return SummaryMemory(self.config, template, lambda: ShownMemory(template, system, self))

    def check(self, template: ChatTemplate) -> None:
        template.check()


class SummaryMemory:
    """Turns since the newest summary.

    Args:
        begin: makes an empty memory, in which turns since a summary are kept.

    Attributes:
        config: of the context.
        task: first observation of the episode, which each prompt begins with; None before it.
        summaries: how many there are.
    """

    def __init__(self, config: SummaryConfig, template: ChatTemplate, begin: Callable[[], Memory]):
        self.config, self.task, self.summaries = config, None, 0
        self._begin, self._segment, self._summary, self._replied = begin, begin(), "", False
        self._reserve = len(template.bridge(config.request, ended=False)) + config.tokens
        self.task: str | None

    def prompt(self, observation: str) -> list[int]:
        if self.summaries and not self._replied:
            observation = f"{self.task}\n\n{self.config.heading} {self._summary}\n\n{observation}"
        return self._segment.prompt(observation)

    def add_reply(self, prompt_ids: list[int], reply_ids: Sequence[int], text: str) -> None:
        self._segment.add_reply(prompt_ids, reply_ids, text)
        self._replied = True

    def is_due(self, needed: int, room: int) -> bool:
        """True if a summary has to come before what needs so many tokens, prompt included."""
        allowed = self._replied and self.summaries < self.config.summaries
        return allowed and needed + self._reserve > room

    def request(self) -> list[int]:
        """The prompt of a summary."""
        return self._segment.prompt(self.config.request)

    def restart(self, summary: str) -> None:
        """Go on from a summary."""
        self._segment, self._summary, self._replied = self._begin(), summary, False
        self.summaries += 1
