"""An episode as messages, for one role: what was seen and said, and what of it the context shows."""

from collections.abc import Sequence
from typing import Any

from manyturn.agents.play.endpoint.completion import Completion
from manyturn.agents.play.endpoint.tool_calls import reply_text, results, said_again, with_ids
from manyturn.agents.text.context import Context, Exchange
from manyturn.agents.text.reasoning import without_reasoning

Message = dict[str, Any]
_CUT = "(reply cut)"  # the words of a reply that had none before it was cut; servers refuse empty ones


class Conversation:
    """Observations and replies of one role in an episode.

    Args:
        system: the system text.
        context: what it is shown of the past.
        strips: leave the reasoning of earlier replies out.

    Attributes:
        last: its last reply.
    """

    def __init__(self, system: str, context: Context, *, strips: bool = False):
        self._system, self._context, self._strips = system, context, strips
        self._past: list[Exchange] = []
        self._replies: list[Completion] = []
        self._calls = 0

    @property
    def last(self) -> Completion | None:
        return self._replies[-1] if self._replies else None

    def messages(self, view: str) -> list[Message]:
        """The messages of the next request.

        Args:
            view: what there is to answer. It is the result of the calls before, if the reply before made any.
        """
        shown, now = self._context.shown(self._past, view)
        messages: list[Message] = [{"role": "system", "content": self._system}] if self._system else []
        before: Completion | None = None
        for (observation, text), reply in zip(shown, self._replies_of(shown), strict=True):
            messages += _answer(before, observation)
            messages.append(self._earlier(reply, text))
            before = reply
        return messages + _answer(before, now)

    def add_reply(self, view: str, reply: Completion) -> str:
        """Take down what was answered to a view; gives its text."""
        reply = reply._replace(calls=with_ids(reply.calls, self._calls))
        text = reply_text(reply.text, reply.calls)
        if reply.cut:  # its calls were not run, so they have no results
            reply = reply._replace(calls=())
        self._calls += len(reply.calls)
        self._past.append((view, reply_text(reply.text, reply.calls) or _CUT if reply.cut else text))
        self._replies.append(reply)
        return text

    def _earlier(self, reply: Completion | None, text: str) -> Message:
        """A reply in the next request, with its reasoning as the server gave it."""
        text = without_reasoning(text) if self._strips else text
        reasoning = {} if reply is None or self._strips else dict(reply.reasoning)
        if reply is None or not reply.calls:
            return {"role": "assistant", "content": text, **reasoning}
        words = without_reasoning(reply.text) if self._strips else reply.text
        # Templates of some servers print a content that is null.
        content = {"content": words} if words else {}
        return {"role": "assistant", **content, **reasoning, "tool_calls": said_again(reply.calls)}

    def _replies_of(self, shown: Sequence[Exchange]) -> list[Completion | None]:
        """The replies that a context shows as they were; None for words of its own."""
        places = range(len(self._past) - len(shown), len(self._past))
        return [
            self._replies[place] if place >= 0 and self._past[place][1] == text else None
            for place, (_, text) in zip(places, shown, strict=True)
        ]


def _answer(before: Completion | None, observation: str) -> list[Message]:
    """Messages that follow a reply: its calls' results, or an observation."""
    if before is not None and before.calls:
        return results(before.calls, observation)
    return [{"role": "user", "content": observation}]
