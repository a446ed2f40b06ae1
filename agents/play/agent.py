"""The language-model agent: reply format, context and engine put together."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from manyturn.agents.engine.engine import Engine, EngineRefused, Reply, Sampling
from manyturn.agents.engine.reply_check import Checked
from manyturn.agents.play.episode import Act, ContextFull, Cut, TokensSpent
from manyturn.agents.play.reply_order import EpisodeReplies, NextReply, ReplyOrder
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.choice_decoding import Choices, NoChoice, ReplyChoices, Unit
from manyturn.agents.text.context import CONTEXTS, Memory
from manyturn.agents.text.contexts.whole import WholeConfig
from manyturn.agents.text.formats.free_text import FreeTextConfig
from manyturn.agents.text.inner_turn import INNER
from manyturn.agents.text.reply_format import FORMATS, ReplyFormat
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import NO_LIMITS, LastPrompt, Ledger, Limits
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import Seat


class AgentConfig(Options):
    """Options of a language model that acts."""

    format: Annotated[Any, FORMATS.field] = FreeTextConfig()
    """How a reply says which action is meant: free_text, tagged, tool_call, native_tools (of endpoints), or a
    plugin's."""
    context: Annotated[Any, CONTEXTS.field] = WholeConfig()
    """How much of the past is shown: whole, window, summary (which the policy writes itself), or a plugin's."""
    inner: Annotated[Any, INNER.optional_field] = None
    """Inner turns before an action, which the environment does not see: planning, self_critique, or a plugin's; unset:
    none."""
    system: str = ""
    """Text of your own that the agent is given first, before the environment's instructions. It takes the place of a
    system text that the model's chat template puts there where it is given none."""
    template_system: Literal["keep", "remove"] = "keep"
    """Whether that text of the template's own stays where the agent is given no system text; remove leaves it out."""
    instructions: bool = True
    """Give the agent the environment's instructions; a model trained on only one environment can do without."""
    show_admissible: bool = False
    """List the admissible commands below each observation."""
    only_admissible: bool = False
    """Choice decoding: a reply is one of the turn's admissible commands."""
    choices: Annotated[Literal["token", "command"], OnlyWith("only_admissible", may_wait=True)] = "token"
    """How it is chosen. token: each token is drawn among those that lead to a command, and log-probabilities, entropies
    and gradients are of that distribution. command: a command is as likely as its tokens are among all of the
    vocabulary, over the sum of that for all commands of the turn; temperature 0 takes the likeliest. Drawing freely
    until a command comes would give the same. Log-probabilities, entropies and gradients are of this distribution too:
    the learner reads all commands of each turn behind its prompt. Nothing then makes a free reply a command."""
    max_context: int = Field(default=2048, ge=16)
    """Longest prompt and reply together, in tokens; an episode that outgrows it is truncated."""

    max_episode_tokens: int | None = Field(default=None, ge=1)
    """Most tokens of all replies of an episode together; an episode that has used them up is truncated."""
    reasoning: Literal["keep", "strip"] = "keep"
    """Reasoning of earlier turns in the history: keep shows replies as they were, strip leaves it out, as many models'
    own templates do; the prompt is then computed anew at each turn."""
    cut: Literal["tell", "end"] = "tell"
    """A reply cut at its limit of tokens never acts: tell shows the policy a line about it and asks again, which uses
    up a turn; end truncates the episode."""

    @field_validator("instructions", mode="before")
    @classmethod
    def _no_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("true or false: are the environment's given? A text of your own is agent.system")
        return value

    @property
    def reply_format(self) -> ReplyFormat:
        """The format that the options of ``format`` describe."""
        return FORMATS.apply(self.format)

    @property
    def room(self) -> int | None:
        """Tokens of all prompts and replies of an episode together; None where the context drops some of its past."""
        return self.max_context if self.appends else None

    @property
    def appends(self) -> bool:
        """True if each prompt begins with the prompt and the reply before it."""
        return CONTEXTS.apply(self.context).appends and self.reasoning == "keep"

    @property
    def chooses(self) -> Unit | None:
        """Unit by which replies are limited to admissible commands; None if they are not."""
        return self.choices if self.only_admissible else None

    @property
    def inner_option(self) -> str | None:
        """The option that makes inner turns; None if none does."""
        if self.inner is not None:
            return f"agent.inner = {self.inner.name!r}"
        return f"agent.context = {self.context.name!r}" if CONTEXTS.apply(self.context).summarises else None

    @property
    def inner_tokens(self) -> int:
        """Most tokens of all inner turns before an action, summaries apart."""
        return 0 if self.inner is None else self.inner.tokens * len(self.inner.kinds)

    @property
    def inner_texts(self) -> list[str]:
        """Texts that ask for inner turns and show them."""
        turns = None if self.inner is None else INNER.apply(self.inner)
        requests = [] if turns is None else [*(request.text for request in turns.requests), turns.action]
        return [*requests, *CONTEXTS.apply(self.context).texts]

    def refuse_inner(self, what: str) -> str | None:
        """The reason for which something cannot be had where there are inner turns; None where there are none.

        Args:
            what: its name, and a verb that says what it does, such as "rollout.guidance records replies once more".
        """
        if self.inner_option is None:
            return None
        return f"{what}, and {self.inner_option} makes inner turns, which are no actions: leave one of them out"

    def system_text(self, instructions: str) -> str:
        """The text that the agent is given once."""
        rules = instructions if self.instructions else ""
        return "\n\n".join(part for part in (self.system, rules, self.reply_format.hint()) if part)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return self._unused_template_system(env) or self.fault_of_choices(env)

    def _unused_template_system(self, env: EnvFacts | None) -> str | None:
        text = self.system_text("" if env is None else env.instructions)
        if self.template_system == "keep" or not text:
            return None
        return (
            f"agent.template_system has no effect: the agent is given a system text, {text!r:.60}, and the template "
            "adds none of its own; leave it out"
        )

    def fault_of_choices(self, env: EnvFacts | None) -> str | None:
        """The reason for which replies cannot be limited to admissible commands, if they are to be."""
        if not self.only_admissible:
            return None
        if self.reply_format.thinks:
            return (
                "agent.only_admissible leaves no room for the reasoning that agent.format.think asks for: set "
                "agent.format.think = false"
            )
        if env is None or env.has_admissible:
            return None
        return (
            f"agent.only_admissible chooses among admissible commands, which {env.name} does not list: override "
            "admissible() in the environment, or leave the option out"
        )

    def check_text(self) -> None:
        """Raise ValueError where replies are more than text, which only an endpoint's are."""
        if self.reply_format.by_request:
            raise ValueError(
                f"agent.format = {self.format.name} is for endpoints, openai:MODEL: set agent.format to tool_call"
            )

    def cut_of(self, usage: Usage) -> Cut | None:
        """The cut of a reply, if its usage says that it was cut."""
        return Cut(usage.reply_tokens or 0, ends=self.cut == "end") if usage.cut else None

    def tokens_left(self, spent: int, longest: int) -> int:
        """Most tokens of the next reply, ``longest`` unless the episode has fewer left. Raises TokensSpent for none.

        Args:
            spent: reply tokens of the episode so far.
        """
        if self.max_episode_tokens is None:
            return longest
        if spent >= self.max_episode_tokens:
            raise TokensSpent(f"{spent} reply tokens use up agent.max_episode_tokens = {self.max_episode_tokens}")
        return min(longest, self.max_episode_tokens - spent)

    def view(self, step: Answer) -> str:
        """The text that the agent reads at a turn."""
        if self.show_admissible and step.admissible:
            return f"{step.observation}\n\nAdmissible commands: {'; '.join(step.admissible)}"
        return step.observation


class Agent:
    """A policy that asks an engine.

    Args:
        config: format and context.
        template: the model's chat template.
        engine: computes the replies.
        sampling: how they are drawn.
        name: for tables.
    """

    def __init__(
        self, config: AgentConfig, template: ChatTemplate, engine: Engine, sampling: Sampling, name: str = "model"
    ):
        config.check_text()
        if config.only_admissible and not engine.capabilities.choices:
            raise ValueError(
                "agent.only_admissible limits replies token by token, which this engine cannot: take one that does, "
                "such as engine.name = 'transformers', or leave it out"
            )
        if config.chooses == "command" and not engine.capabilities.commands:
            raise ValueError(
                "agent.choices = 'command' chooses among whole commands, which this engine cannot: take one that does, "
                "such as engine.name = 'transformers', or leave it out"
            )
        if fault := config.fault_of_choices(None):
            raise ValueError(fault)
        self.format, self.context = config.reply_format, CONTEXTS.apply(config.context)
        if config.template_system == "remove":
            template = template.without_own_system()
        if config.reasoning == "strip":
            template = template.without_reasoning()
        else:
            self.context.check(template)
        self.config, self.template, self.sampling, self.name = config, template, sampling, name
        self.engine, self._engine = Checked(engine, template), engine
        limited = config.only_admissible
        self._commands = ReplyChoices(self.format, template, config.choices) if limited else None
        self.order = ReplyOrder(template, config.inner, config.max_context, sampling.max_tokens)

    def player(self, key: EpisodeKey, instructions: str) -> "AgentPlayer":
        return self.join(key, instructions, Ledger())

    def join(self, key: EpisodeKey, instructions: str, ledger: Ledger) -> "AgentPlayer":
        """Begin an episode in which other policies play too, all in one ledger."""
        return AgentPlayer(self, key, instructions, ledger)

    def writer(self, longest: int) -> "Agent":
        """The same model as one that answers a prompt with text.

        Args:
            longest: tokens of an answer, at most; half of the context where that is less.
        """
        most = self.config.max_context
        config = AgentConfig(context=self.config.context, reasoning=self.config.reasoning, max_context=most)
        sampling = self.sampling.model_copy(update={"max_tokens": min(longest, most // 2)})
        return Agent(config, self.template, self._engine, sampling, self.name)

    def choices(self, step: Answer, seat: Seat) -> Choices | None:
        """The replies that are possible at a turn; None if any is. Raises EnvError where there are none."""
        if self._commands is None:
            return None
        try:
            return self._commands.of(step.admissible)
        except NoChoice as error:
            raise EnvError(f"{seat.name} {error}") from error


class Memories(dict[str, Memory]):
    """Memory of each agent in an episode: its own observations and replies."""

    def __init__(self, policy: Agent, instructions: str):
        self._policy, self._instructions = policy, instructions

    def __missing__(self, role: str) -> Memory:
        policy = self._policy
        start = policy.context.start if policy.config.reasoning == "keep" else policy.context.rendered
        self[role] = start(policy.template, policy.config.system_text(self._instructions))
        return self[role]


class AgentPlayer:
    """The policy within one episode, for every agent that it plays.

    Attributes:
        replies: order and past of each agent's.
    """

    def __init__(
        self, agent: Agent, key: EpisodeKey, instructions: str, ledger: Ledger, sampling: Sampling | None = None
    ):
        self._agent, self._key, self._sampling = agent, key, sampling or agent.sampling
        self.replies = EpisodeReplies(agent.order, Memories(agent, instructions))
        self.ledger = ledger
        self._coming: tuple[Answer, NextReply] | None = None
        agent.engine.open(key)

    async def act(self, step: Answer, seat: Seat) -> Act:
        agent, reply = self._agent, self.next(step)
        if len(reply.prompt) + reply.tokens > agent.config.max_context:
            self.ledger.unanswered = LastPrompt(list(reply.prompt), step.role)
            raise ContextFull(
                f"{len(reply.prompt)} prompt tokens and a reply of up to {reply.tokens} exceed "
                f"agent.max_context = {agent.config.max_context}"
            )
        choices = self.choices(step, seat)
        sampling = self._limited(reply, choices)
        drawn = await agent.engine.generate(self._key, len(self.ledger.spans), reply.prompt, sampling, choices)
        return self.take_down(step, reply.prompt, drawn, choices)

    def _limited(self, reply: NextReply, choices: Choices | None) -> Sampling:
        """The sampling of the next reply, with as many tokens as it may take. Raises TokensSpent and EngineRefused."""
        agent, sampling = self._agent, self._sampling
        spent = sum(span.end - span.start for span in self.ledger.spans if span.version >= 0)
        longest = agent.config.tokens_left(spent, reply.tokens)
        if longest < reply.tokens and choices is not None and choices.longest > longest:
            raise TokensSpent(f"{longest} tokens are left, and a command takes {choices.longest}")
        if choices is not None and choices.longest > reply.tokens:
            raise EngineRefused(
                f"an admissible command takes {choices.longest} tokens as a reply, more than sampling.max_tokens = "
                f"{reply.tokens}: give --sampling.max-tokens {choices.longest}"
            )
        return sampling if longest == sampling.max_tokens else sampling.model_copy(update={"max_tokens": longest})

    def choices(self, step: Answer, seat: Seat) -> Choices | None:
        """The replies that are possible; see ``Agent.choices``. Any inner turn is."""
        return None if self.next(step).kind else self._agent.choices(step, seat)

    def look(self, step: Answer) -> None:
        self.ledger.unanswered = LastPrompt(list(self.prompt(step)), step.role)

    def next(self, step: Answer) -> NextReply:
        """The agent's next reply: an action, or an inner turn before it."""
        if self._coming is None or self._coming[0] is not step:
            self._coming = (step, self.replies.next(step, self._agent.config.view(step)))
        return self._coming[1]

    def prompt(self, step: Answer) -> list[int]:
        """The prompt of the agent's next reply."""
        return self.next(step).prompt

    def take_down(self, step: Answer, prompt: list[int], drawn: Reply, choices: Choices | None) -> Act:
        """Record a reply as the agent's own, wherever it comes from, and read its action.

        Raises:
            EnvError: it is none of the choices.
        """
        agent, text, reply = self._agent, self._agent.template.decode(drawn.ids), self.next(step)
        limits = limits_of(choices, drawn.ids, text)
        ids, pieces = drawn.ids, agent.template.pieces(drawn.ids)
        self.ledger.record(prompt, ids, drawn.logprobs, drawn.version, drawn.entropies, step.role, limits)
        self.replies.add(step.role, reply, ids, text)
        self._coming = None
        usage = Usage(len(prompt), len(ids), cut=drawn.finish == "length")
        if reply.kind:
            return Act(text, "", pieces=pieces, usage=usage, inner=reply.kind, shown=reply.shown)
        reading = agent.format.read(text, opened=agent.template.opens_reasoning)
        return Act(
            text,
            reading.action,
            reading.format_valid,
            pieces,
            usage,
            reading.reasoning,
            None if choices is not None else agent.config.cut_of(usage),
            None if reading.format_valid else "format" if text.strip() else "empty",
            shown=reply.shown,
        )

    def leave(self) -> None:
        self._agent.engine.close(self._key)


def limits_of(choices: Choices | None, ids: Sequence[int], text: str) -> Limits:
    """The limits that a reply was drawn within.

    Raises:
        EnvError: the reply is none of the choices.
    """
    if choices is None:
        return NO_LIMITS
    if (allowed := choices.along(ids)) is None:
        raise EnvError(
            f"{text!r:.80} is none of the {len(choices.replies)} admissible commands of its turn, which "
            "agent.only_admissible chooses from: have admissible() list all that expert() says"
        )
    return Limits(allowed) if choices.unit == "token" else Limits(commands=choices.replies)
