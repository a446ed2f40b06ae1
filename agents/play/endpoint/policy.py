"""A policy behind an endpoint: chat completions, OpenAI's Responses or Anthropic's Messages.

Messages go out and text or tool calls come back, so there is no token ledger and nothing can be learnt from the
episodes.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.endpoint.client import Client
from manyturn.agents.play.endpoint.completion import Completion, read_completion
from manyturn.agents.play.endpoint.conversation import Conversation, Message
from manyturn.agents.play.endpoint.options import Endpoint, EndpointSampling
from manyturn.agents.play.endpoint.retries import Asking, EndpointError
from manyturn.agents.play.endpoint.tool_calls import action_of
from manyturn.agents.play.episode import Act, ContextFull, Cut
from manyturn.agents.text.chat_template import well_formed
from manyturn.agents.text.context import CONTEXTS
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat
from manyturn.envs.tools.tool import Schema
from manyturn.envs.tools.tool_prompt import without_tools
from manyturn.envs.users.endpoint.protocols.protocol import EndpointProtocol
from manyturn.envs.users.endpoint.protocols.registry import OPENAI, PROTOCOLS
from manyturn.envs.users.endpoint.protocols.service import Manner


class EndpointRequest(NamedTuple):
    """One request: the conversation, tools that the model may call, and the longest reply; None: as sampling says."""

    messages: list[Message]
    tools: Sequence[Schema] = ()
    longest: int | None = None


class Answers(Protocol):
    """Answers that were given before, so that no request is made twice."""

    def get(self, key: EpisodeKey, request: str) -> Completion | None:
        """The answer to a request, by a hash of it; None for a new one."""
        ...

    def keep(self, key: EpisodeKey, request: str, answer: Completion) -> None:
        """Keep the answer to a request."""


def _read(protocol: EndpointProtocol, raw: bytes, body: Mapping[str, Any]) -> Completion:
    return read_completion(protocol.read(raw), offered=bool(body.get("tools")), reply=protocol.reply)


class OpenAIPolicy:
    """Plays by asking an endpoint.

    Args:
        model: the model's name at the endpoint.
        protocol: the word of its protocol.
        config: system text, views, reply format and context.
        sampling: how replies are drawn; the seed sent is derived from the episode's key.
        endpoint: where it is and how patient to be.

    Attributes:
        asking: the endpoint; it counts what was spent.
        answers: those that were given before, where a run keeps them.

    Raises:
        ValueError: no address is known, address or key cannot be right, or an option is not an endpoint's.
    """

    def __init__(
        self,
        model: str,
        config: AgentConfig,
        sampling: EndpointSampling,
        endpoint: Endpoint | None = None,
        protocol: str = OPENAI,
    ):
        if config.template_system != "keep":
            raise ValueError(
                "agent.template_system has no effect: an endpoint's server renders the template; give --agent.system, "
                "which takes the place of the template's own text"
            )
        if config.only_admissible:
            raise ValueError(
                "agent.only_admissible limits replies token by token, which an endpoint does not let us: leave it out; "
                "--agent.show-admissible true lists the commands instead"
            )
        if fault := config.refuse_inner("an endpoint is asked for actions alone"):
            raise ValueError(fault)
        self.name, self.model, self.config, self.protocol = f"{protocol}:{model}", model, config, protocol
        spoken, self.endpoint = PROTOCOLS[protocol], endpoint or Endpoint()
        self.sampling = _fitting(sampling, self.endpoint, spoken)
        self.format, self.context = config.reply_format, CONTEXTS.apply(config.context)
        client = Client(self.endpoint, spoken)
        manner = Manner(self.endpoint.stream, config.reasoning == "keep")
        self.asking, self.where = Asking(client, self.endpoint, partial(_read, spoken), manner), client.where
        self._length_name = "max_tokens" if spoken.length else self.endpoint.length_name(client.url.host)
        self.answers: Answers | None = None

    @property
    def concurrency(self) -> int:
        """Episodes that can wait for a reply at the same time."""
        return self.endpoint.concurrency

    @property
    def priced(self) -> bool:
        """True if the cost of replies is to be counted."""
        return self.endpoint.price_in is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no file may hold."""
        return self.asking.client.secrets

    def player(self, key: EpisodeKey, instructions: str) -> "OpenAIPlayer":
        """Begin an episode.

        Raises:
            EndpointError: the format sends tools, and the environment has none.
        """
        rules, tools = without_tools(instructions) if self.format.by_request else (instructions, ())
        if self.format.by_request and not tools:
            raise EndpointError(
                f"agent.format = {self.config.format.name} sends the environment's tools, and its instructions name "
                "none: use --agent.format tagged, or name them with manyturn.envs.tools.tool_prompt"
            )
        return OpenAIPlayer(self, key, self.config.system_text(rules), tools)

    def writer(self, longest: int) -> "OpenAIPolicy":
        """The same model as one that answers a prompt with text, as long as ``sampling.max_tokens`` allows."""
        config = AgentConfig(max_context=self.config.max_context, reasoning=self.config.reasoning)
        writer = OpenAIPolicy(self.model, config, self.sampling, self.endpoint, self.protocol)
        writer.asking = self.asking
        return writer

    async def complete(self, request: EndpointRequest, key: EpisodeKey, turn: int) -> Completion:
        """The endpoint's reply.

        Raises:
            ContextFull: the endpoint says that the messages are too long.
            EndpointError: nothing answers there.
            EngineError: it refused, or all attempts failed.
        """
        body = {
            "model": self.model,
            "messages": [
                {entry: well_formed(value) if isinstance(value, str) else value for entry, value in message.items()}
                for message in request.messages
            ],
            **({"tools": [dict(tool) for tool in request.tools]} if request.tools else {}),
            **self.sampling.fields(self._length_name, key.noise_seed(turn) % 2**31),
            **({} if request.longest is None else {self._length_name: request.longest}),
        }
        name = digest([self.where, list(key), turn, json.dumps(body)])
        if self.answers is not None and (before := self.answers.get(key, name)) is not None:
            return before
        answer = await self.asking.ask(body, lambda attempt: generator("backoff", *key, turn, attempt).random())
        if self.answers is not None:
            self.answers.keep(key, name, answer)
        return answer


class OpenAIPlayer:
    """The endpoint's model within one episode, for every role that it is asked for.

    Attributes:
        replies: for each turn what came back.
    """

    def __init__(self, policy: OpenAIPolicy, key: EpisodeKey, system: str, tools: Sequence[Schema]):
        self._policy, self._key, self._system, self._tools = policy, key, system, tools
        self._conversations: dict[str, Conversation] = {}
        self.ledger: Ledger | None = None
        self.replies: list[Completion] = []

    async def act(self, step: Answer, seat: Seat) -> Act:
        policy, turn = self._policy, len(self.replies)
        if step.role not in self._conversations:
            strips = policy.config.reasoning == "strip"
            self._conversations[step.role] = Conversation(self._system, policy.context, strips=strips)
        conversation = self._conversations[step.role]
        self._check_room(conversation.last)
        view, longest = policy.config.view(step), self._longest()
        messages = conversation.messages(view)
        reply = await policy.complete(EndpointRequest(messages, self._tools, longest), self._key, turn)
        if reply.counted is not None and reply.counted.reply >= longest:  # some servers call it tool_calls or stop
            reply = reply._replace(cut=True)
        self.replies.append(reply)
        text = conversation.add_reply(view, reply)
        usage = policy.endpoint.usage(reply.charged, reply.cut)
        reading = policy.format.read(reply.text)
        action, format_valid = action_of(reply.calls) if reply.calls else (reading.action, reading.format_valid)
        return Act(
            text,
            action,
            format_valid,
            usage=usage,
            reasoning="\n".join(part for part in (reply.thought, reading.reasoning) if part),
            cut=Cut(longest, ends=policy.config.cut == "end") if reply.cut else None,
            fault=None if format_valid else _fault(reply),
        )

    def _longest(self) -> int:
        """Most tokens of the next reply. Raises TokensSpent, and EndpointError where nobody counts them."""
        config = self._policy.config
        counts = [reply.charged for reply in self.replies]
        if config.max_episode_tokens is not None and None in counts:
            raise EndpointError(
                "agent.max_episode_tokens counts reply tokens, which this server does not report: leave it out"
            )
        spent = sum(count.reply for count in counts if count is not None)
        return config.tokens_left(spent, self._policy.sampling.max_tokens)

    def leave(self) -> None:
        """Nothing is kept."""

    def _check_room(self, last: Completion | None) -> None:
        """Hold ``max_context`` as far as it is known: the next prompt is longer than the last prompt and reply."""
        if last is None or last.counted is None or not self._policy.config.appends:
            return
        so_far, longest = last.counted.prompt + last.counted.reply, self._policy.sampling.max_tokens
        if so_far + longest > self._policy.config.max_context:
            raise ContextFull(
                f"{so_far} tokens so far and a reply of up to {longest} exceed "
                f"agent.max_context = {self._policy.config.max_context}"
            )


def _fitting(sampling: EndpointSampling, endpoint: Endpoint, protocol: EndpointProtocol) -> EndpointSampling:
    """Sampling without the defaults that a protocol does not take. Raises ValueError for an option without effect."""
    for name in sorted(protocol.lacks & sampling.model_fields_set):
        if getattr(sampling, name):
            raise ValueError(f"sampling.{name} has no effect: {protocol.title} has no such entry: leave it out")
    for name, place in protocol.taken.items():
        if name in sampling.extra_body:
            raise ValueError(f"sampling.extra_body: {name} has its own place: {place}")
    if endpoint.length_field is not None and protocol.length is not None:
        own = f"{protocol.title} calls the longest reply {protocol.length}"
        raise ValueError(f"endpoint.length_field has no effect: {own}: leave it out")
    without = {"seed": False} if "seed" in protocol.lacks else {}
    return sampling.with_defaults({**without, **dict.fromkeys(protocol.unset)})


def _fault(reply: Completion) -> str:
    """The fault of a reply that means nothing; see ``FAULTS``."""
    if reply.finish == "content_filter":
        return "filtered"
    if reply.refused or reply.finish == "refusal":
        return "refused"
    if reply.calls:
        return "arguments"
    return "format" if reply.text.strip() else "empty"
