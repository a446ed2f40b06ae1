"""Agent of a verifiers environment: the policy that acts here, one text reply after the other.

Nothing of an agent's own program runs. The trace is verifiers' own, with the messages in their order, and its task
judges it. Source: the package verifiers 0.4.0, ``verifiers.v1.agent.Interaction`` and ``verifiers.v1.rollout.Rollout``.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from verifiers.v1.dialects import parse_message  # pyright: ignore[reportMissingImports]
from verifiers.v1.session import call_hook  # pyright: ignore[reportMissingImports]
from verifiers.v1.state import state_cls  # pyright: ignore[reportMissingImports]
from verifiers.v1.trace import AgentInfo, TraceTask  # pyright: ignore[reportMissingImports]
from verifiers.v1.types import content_text  # pyright: ignore[reportMissingImports]
from verifiers.v1.utils.decorators import invoke  # pyright: ignore[reportMissingImports]

from manyturn.envs.verifiers.taskset_loader import task_refusal

Ask = Callable[[str], Awaitable[str | None]]
"""Says a text to whoever acts; gives the reply, or None once there are no turns left."""


class _NoRuntime:
    """Stands for the place where an agent's program would run."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            f"the task uses a runtime of verifiers (runtime.{name}), and here is none: an action is text"
        )


class TextTalk:
    """A conversation that is held open, as verifiers' ``Interaction`` is.

    Attributes:
        trace: verifiers' own record of it.
    """

    def __init__(self, task: Any, name: str, config: Any, ask: Ask):
        self._task, self._ask = task, ask
        self._is_begun = self._is_over = False
        about = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        agent = AgentInfo(config=config, name=name)
        self.trace: Any = vf.Trace(task=about, state=state_cls(type(task))(), agent=agent)

    async def turn(self, message: Any = None) -> Any:
        """Say something, or nothing where the task's prompt opens; gives what came back as a ``Segment``."""
        if self._is_over:
            raise RuntimeError("the conversation is over: look at its trace")
        prompt = None if self._is_begun else self._task.data.prompt
        if (prompt is None) == (message is None):
            raise ValueError(
                "a bare turn() lets the task's prompt open the conversation; any other turn says something"
            )
        messages = _messages(message if prompt is None else prompt)
        self._is_begun = True
        reply = None if await self._is_stopped() else await self._ask(_text(messages))
        if reply is None:
            self._is_over = True
            self.trace.stop("max_turns")  # unless a stop of the task's own has come first
            return vf.Segment(messages=[], terminated=True)
        system = self._task.data.system_prompt
        if not self.trace.nodes and system:
            messages = [vf.SystemMessage(content=system), *messages]
        reply_message = vf.AssistantMessage(content=reply)
        for one in (*messages, reply_message):
            parent = len(self.trace.nodes) - 1 if self.trace.nodes else None
            self.trace.nodes.append(vf.MessageNode(parent=parent, message=one, sampled=one is reply_message))
        return vf.Segment(messages=[reply_message])

    async def _is_stopped(self) -> bool:
        for stop in self._task.hooks("stop"):
            if await call_hook(stop, {vf.Trace: self.trace}):
                self.trace.stop(stop.__name__)
                return True
        return False


class TextAgent:
    """The one agent of an environment.

    Args:
        name, config: of its role.
        ask: reaches whoever acts.
        traces: takes the trace of the conversation once it is over.
    """

    def __init__(self, name: str, config: Any, ask: Ask, traces: list[Any]):
        self.name, self.config, self.trainable = name, config, True
        self._ask, self._traces, self._is_used = ask, traces, False

    async def run(self, task: Any, **words: Any) -> Any:
        """One reply to the task's prompt."""
        async with self.interaction(task, **words) as talk:
            await talk.turn()
        return talk.trace

    @contextlib.asynccontextmanager
    async def interaction(self, task: Any, **words: Any) -> AsyncIterator[TextTalk]:
        """A conversation about a task, which the task judges when it is closed."""
        if self._is_used:
            raise ValueError("it opens several conversations in an episode, and an episode here is one")
        if any(value is not None for value in words.values()):
            raise ValueError(f"an agent that answers with text takes no {', '.join(words)}")
        if why := task_refusal(task):
            raise ValueError(f"the task is not played: {why}")
        self._is_used = True
        talk = TextTalk(task, self.name, self.config, self._ask)
        arguments = {"trace": talk.trace, "runtime": _NoRuntime()}
        await invoke(task.setup, arguments)
        yield talk
        talk.trace.stop("user_closed")
        await invoke(task.finalize, arguments)
        await task.score(talk.trace, None)
        talk.trace.ok = True
        self._traces.append(talk.trace)


class TextAgents:
    """The agents of an environment by name, of which there is one."""

    def __init__(self, agent: TextAgent):
        self._agent = agent

    def __getattr__(self, name: str) -> TextAgent:
        if name != self.__dict__["_agent"].name:
            raise AttributeError(f"no agent {name!r}: there is {self._agent.name}")
        return self._agent


def _messages(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [vf.UserMessage(content=value)]
    return [parse_message(one) if isinstance(one, dict) else one for one in value]


def _text(messages: list[Any]) -> str:
    for one in messages:
        if not isinstance(one.content, str) and any(part.type != "text" for part in one.content or ()):
            raise ValueError("the task shows a picture or another file, and an observation here is text")
    return "\n\n".join(text for one in messages if (text := content_text(one.content)))
