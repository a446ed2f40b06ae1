"""Order of an agent's replies in an episode: before an action may come inner turns, by its options or its context."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.context import Memory
from manyturn.agents.text.contexts.summary import SummaryMemory
from manyturn.agents.text.inner_turn import INNER, InnerConfig, InnerRequest, InnerTurns
from manyturn.agents.text.reasoning import split_reasoning
from manyturn.envs.hosting.handle.env_handle import Answer

SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class NextReply:
    """The reply that comes next.

    Attributes:
        prompt: everything that the policy sees before it.
        tokens: at most.
        shown: text that the policy reads since its last reply, where that is not the observation alone.
        kind: of an inner turn; empty for an action.
    """

    prompt: list[int]
    tokens: int
    shown: str | None = None
    kind: str = ""


class ReplyOrder:
    """Order in which an agent replies; one for all of its episodes.

    Args:
        inner: inner turns before actions; None for none.
        room: tokens of a prompt and its reply.
        longest: tokens of an action, at most.
    """

    def __init__(self, template: ChatTemplate, inner: InnerConfig | None, room: int, longest: int):
        self.template, self.room, self.longest = template, room, longest
        self._config = inner
        self._turns = InnerTurns((), "") if inner is None else INNER.apply(inner)
        texts = [*(request.text for request in self._turns.requests[1:]), self._turns.action]
        bridges = sum(len(template.bridge(text, ended=False)) for text in texts) if inner else 0
        self._inner_tokens = 0 if inner is None else bridges + inner.tokens * len(self._turns.requests)

    def requests(self, actions: int) -> tuple[InnerRequest, ...]:
        """Inner turns before the action after so many."""
        return self._turns.requests if self._config and actions % self._config.every == 0 else ()

    def after_opening(self, actions: int) -> int:
        """Tokens that replies and requests take, at most, after the prompt with an observation."""
        return self.longest + (self._inner_tokens if self.requests(actions) else 0)

    @property
    def action(self) -> str:
        """Text that the policy reads before an action that follows inner turns."""
        return self._turns.action

    @property
    def tokens(self) -> int:
        """Tokens of an inner turn before an action, at most."""
        return 0 if self._config is None else self._config.tokens


class EpisodeReplies:
    """The replies of one episode, of each agent in it.

    Args:
        memories: past of each agent.
    """

    def __init__(self, order: ReplyOrder, memories: Mapping[str, Memory]):
        self._order, self.memories = order, memories
        self._inner, self._actions = Counter[str](), Counter[str]()

    def next(self, step: Answer, view: str) -> NextReply:
        """The reply after an answer of the environment.

        Args:
            view: text that the agent reads of it.
        """
        order, memory, past = self._order, self.memories[step.role], self._inner[step.role]
        requests = order.requests(self._actions[step.role])
        if past:
            request = requests[past] if past < len(requests) else InnerRequest("", order.action)
            tokens = order.tokens if request.kind else order.longest
            return NextReply(memory.prompt(request.text), tokens, request.text, request.kind)
        text = f"\n\n{requests[0].text}" if requests else ""
        prompt = memory.prompt(view + text)
        if isinstance(memory, SummaryMemory):
            if memory.task is None:
                memory.task = step.observation
            if memory.is_due(len(prompt) + order.after_opening(self._actions[step.role]), order.room):
                config = memory.config
                return NextReply(memory.request(), config.tokens, config.request, SUMMARY)
        if not requests:
            return NextReply(prompt, order.longest)
        return NextReply(prompt, order.tokens, step.observation + text, requests[0].kind)

    def add(self, role: str, reply: NextReply, ids: Sequence[int], text: str) -> None:
        """Note a reply that was given."""
        memory = self.memories[role]
        if reply.kind == SUMMARY:
            assert isinstance(memory, SummaryMemory)
            memory.restart(split_reasoning(text, opened=self._order.template.opens_reasoning)[1].strip())
            return
        memory.add_reply(reply.prompt, ids, text)
        self._inner[role] = self._inner[role] + 1 if reply.kind else 0
        self._actions[role] += not reply.kind
