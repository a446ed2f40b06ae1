"""A user played by a language model behind any OpenAI-compatible endpoint."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.calls import BadCall, read_calls
from manyturn.envs.tools.tool import Schema
from manyturn.envs.users.endpoint.chat_completion import CompletionCall, clean
from manyturn.envs.users.endpoint.llm_client import AskedModel, ModelOptions, Unanswered
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError

_RULES = (
    "You play a person talking to an assistant. Stay in character. Say one short thing at a time, in plain "
    "words. Give information only when asked for it, and invent nothing. When you have what you want, or see "
    "that you cannot get it, write {stop} and nothing else.\n\n{brief}"
)
GREETING = "Hello. How can I help you?"


class ModelUser(User):
    """Asks a model what the user says. A restored episode asks for the opening again before it continues.

    Args:
        brief: what the model is told about a task.
        options: model, endpoint and patience.
        rules: what stands before the brief, with ``{brief}`` and ``{stop}``; default: to stay in the role, tell only
            what is asked for, and leave with the stop mark.
        greeting: what the user is answering when it speaks first; None where the agent speaks first, or where the
            environment greets, as it must a user that may call tools at once.
        tools: schemas of the tools that the user has; the environment must then be one that runs ``Heard.calls``.
        marks: what the model may also write to leave, besides ``options.stop``.

    Raises:
        ValueError: there is no address, or one that holds secrets.
    """

    def __init__(
        self,
        brief: Callable[[Task], str],
        options: ModelOptions,
        rules: str = _RULES,
        greeting: str | None = GREETING,
        tools: Sequence[Schema] = (),
        marks: Sequence[str] = (),
    ):
        self.options = options
        self._offer = {"tools": [dict(tool) for tool in tools]} if tools else {}
        self._marks = (options.stop, *marks)
        self._brief, self._rules, self._greeting = brief, rules, greeting
        self._model = AskedModel(options)
        self.name = self._model.name
        self._messages: list[dict[str, Any]] = []
        self._deadline = 0.0

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        system = self._rules.replace("{stop}", self.options.stop).replace("{brief}", self._brief(task))
        self._messages = [{"role": "system", "content": system}]
        return "" if self._greeting is None else self.hear(self._greeting).utterance

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        facts = "".join(f"\n({name}: {value})" for name, value in cue.items() if value)
        self._deadline = self._model.deadline()
        return self._go_on([{"role": "user", "content": clean(text) + facts}])

    def see(self, results: Sequence[str]) -> Heard:
        calls = self._messages[-1]["tool_calls"]
        return self._go_on(
            [
                {"role": "tool", "tool_call_id": call["id"], "content": clean(result)}
                for call, result in zip(calls, results, strict=True)
            ]
        )

    def save(self) -> Any:
        return self._messages

    def load(self, state: Any) -> None:
        self._messages = state

    def _go_on(self, messages: list[dict[str, Any]]) -> Heard:
        try:
            reply = self._model.ask([*self._messages, *messages], self._deadline, lambda choice: choice, **self._offer)
        except Unanswered as error:
            raise UserError(f"the model user {error}") from error
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.calls:
            first = len(self._messages)
            message["tool_calls"] = [_said_again(call, first + place) for place, call in enumerate(reply.calls)]
        self._messages += [*messages, message]
        if reply.calls:
            return Heard("", calls=tuple(map(_written, reply.calls)))
        places = [place for mark in self._marks if (place := reply.text.find(mark)) >= 0]
        return Heard(reply.text[: min(places, default=None)].strip(), done=bool(places))


def _written(call: CompletionCall) -> str:
    """A call as its text, which the environment reads as strictly as an agent's; arguments may hold anything."""
    return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'


def _said_again(call: CompletionCall, number: int) -> dict[str, Any]:
    """A call in the next request; servers refuse arguments that are no object, so those are left out."""
    try:
        arguments = json.dumps(read_calls(_written(call), 1)[0].arguments)
    except BadCall:
        arguments = "{}"
    # nine letters and digits, which the strictest servers ask for
    return {"id": f"call{number:05}", "type": "function", "function": {"name": call.name, "arguments": arguments}}
