"""Demonstrations: another policy's play, recorded as an agent's own."""

from collections.abc import Callable

from manyturn.agents.play.agent import Agent, Memories, limits_of
from manyturn.agents.play.demonstrations.inner_texts import InnerTexts
from manyturn.agents.play.demonstrations.scripted_policy import Mistake
from manyturn.agents.play.episode import Act, ContextFull, Policy
from manyturn.agents.play.reply_order import EpisodeReplies, NextReply
from manyturn.agents.text.choice_decoding import Choices
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import ON_PURPOSE, Label, Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class Demonstrator:
    """Another policy's play, recorded as if this agent had said it: the episodes that supervised warm-up learns from.

    Args:
        agent: gives format, context and template; its engine is asked only where it replies itself.
        teacher: the policy that is imitated.
        labels: note the expert's reply at every turn, whoever replies there (DAgger, arXiv:1011.0686).
        policy_share: share of turns at which the agent itself replies, drawn turn by turn.
    """

    def __init__(self, agent: Agent, teacher: Policy, *, labels: bool = False, policy_share: float = 0.0):
        self.agent, self.teacher, self.name = agent, teacher, teacher.name
        self.labels, self.policy_share = labels, policy_share

    def player(self, key: EpisodeKey, instructions: str) -> "DemonstratorPlayer":
        return self.join(key, instructions, Ledger())

    def join(self, key: EpisodeKey, instructions: str, ledger: Ledger) -> "DemonstratorPlayer":
        """Begin an episode in which other policies play too, all in one ledger."""
        return DemonstratorPlayer(self, key, instructions, ledger)


class DemonstratorPlayer:
    """The demonstrator within one episode."""

    def __init__(self, demonstrator: Demonstrator, key: EpisodeKey, instructions: str, ledger: Ledger):
        agent = self._agent = demonstrator.agent
        self._demonstrator, self._key, self.ledger = demonstrator, key, ledger
        self._policy = agent.join(key, instructions, ledger) if demonstrator.policy_share else None
        replies = None if self._policy is None else self._policy.replies
        self._transcript = Transcript(agent, instructions, ledger, replies)
        self._teacher = demonstrator.teacher.player(key, instructions)
        self._texts, self._taught = InnerTexts(key), None
        self._taught: Act | None

    async def act(self, step: Answer, seat: Seat) -> Act:
        coming = self._transcript.next(step)
        if coming.kind:
            return await self._inner(step, seat, coming)
        label = await seat.expert() if self._demonstrator.labels else None
        if self._policy is not None and self._policy_replies():
            act = await self._policy.act(step, seat)
        else:
            taught = self._taught or await self._teacher.act(step, seat)
            choices = None if isinstance(taught, Mistake) else self._agent.choices(step, seat)
            act = self._transcript.take_down(step, taught, choices)
        self._taught = None
        self._texts.note(step)
        if label is not None:
            self._note(self._transcript.reply_ids(label), self._agent.choices(step, seat), label)
        return act

    async def _inner(self, step: Answer, seat: Seat, coming: NextReply) -> Act:
        """An inner turn before what the teacher is about to do; the policy writes it where it is to reply."""
        self._taught = self._taught or await self._teacher.act(step, seat)
        text = self._texts.of(coming.kind, step, self._taught.action, self._transcript.fits(coming.tokens))
        text = self._transcript.shortened(text, coming.tokens)
        if self._policy is None or not self._policy_replies():
            return self._transcript.write(step, text, wrong=isinstance(self._taught, Mistake))
        act = await self._policy.act(step, seat)
        if self._demonstrator.labels:
            self._note(self._agent.template.reply(text), None, text)
        return act

    def _policy_replies(self) -> bool:
        rng = generator("mixture", *self._key, len(self.ledger.spans))
        return bool(rng.random() < self._demonstrator.policy_share)

    def _note(self, ids: list[int], choices: Choices | None, text: str) -> None:
        """Note the expert's reply at the turn that was just recorded, unless it is the same or has no room."""
        turn = len(self.ledger.spans) - 1
        span = self.ledger.spans[turn]
        repeated = span.version != ON_PURPOSE and self.ledger.reply(turn) == ids
        if not repeated and span.start + len(ids) <= self._agent.config.max_context:
            self.ledger.labels[turn] = Label(ids, limits_of(choices, ids, text).allowed)

    def leave(self) -> None:
        self._teacher.leave()
        if self._policy is not None:
            self._policy.leave()


class Transcript:
    """Replies of other policies, recorded as if this agent had written them.

    Args:
        replies: of an agent that replies in the same episode too.
    """

    def __init__(self, agent: Agent, instructions: str, ledger: Ledger, replies: EpisodeReplies | None = None):
        self._config, self._template, self._format = agent.config, agent.template, agent.format
        self._replies = replies or EpisodeReplies(agent.order, Memories(agent, instructions))
        self.ledger = ledger

    def next(self, step: Answer) -> NextReply:
        """The agent's next reply."""
        return self._replies.next(step, self._config.view(step))

    def fits(self, tokens: int) -> Callable[[str], bool]:
        """A test that a text is a reply of so many tokens at most."""
        return lambda text: len(self._template.reply(text)) <= tokens

    def shortened(self, text: str, tokens: int) -> str:
        """The last words of a text, as many as a reply of so many tokens holds."""
        words, fits = text.split(" "), self.fits(tokens)
        while len(words) > 1 and not fits(" ".join(words)):
            words = words[1:]
        return " ".join(words)

    def reply_ids(self, action: str) -> list[int]:
        """The reply by which the agent would say an action, as it would be recorded."""
        read = self._format.read(action)
        as_it_is = read.format_valid and read.action == action
        return self._template.reply(action if as_it_is else self._format.render(action))

    def take_down(self, step: Answer, act: Act, choices: Choices | None = None) -> Act:
        """A turn as the agent would have had it. A reply from which its format reads the action stays as it is.

        Raises:
            ContextFull: the agent could not read or say so much.
            EnvError: what was said is none of the choices.
        """
        wrong = isinstance(act, Mistake)
        read = self._format.read(act.reply)
        as_it_is = (read.action, read.format_valid) == (act.action, True)
        reasoning = read.reasoning if as_it_is else ""
        text, action, format_valid = act.reply if as_it_is else self._format.render(act.action), act.action, True
        if wrong:
            text = self._format.render(act.action) if act.format_valid else act.reply
            reasoning, action, format_valid = self._format.read(text)
        reply, ids = self._recorded(step, text, choices, wrong=wrong)
        usage = Usage(len(reply.prompt), len(ids), cut=False)
        pieces = self._template.pieces(ids)
        return Act(text, action, format_valid, pieces, usage, reasoning, shown=reply.shown)

    def write(self, step: Answer, text: str, *, wrong: bool = False) -> Act:
        """An inner turn. One that is wrong on purpose is not learnt from. Raises ContextFull."""
        reply, ids = self._recorded(step, text, None, wrong=wrong)
        usage = Usage(len(reply.prompt), len(ids), cut=False)
        return Act(text, "", pieces=self._template.pieces(ids), usage=usage, inner=reply.kind, shown=reply.shown)

    def _recorded(
        self, step: Answer, text: str, choices: Choices | None, *, wrong: bool
    ) -> tuple[NextReply, list[int]]:
        reply, ids = self.next(step), self._template.reply(text)
        if len(reply.prompt) + len(ids) > self._config.max_context:
            raise ContextFull(
                f"a demonstration of {len(reply.prompt) + len(ids)} tokens exceeds agent.max_context = "
                f"{self._config.max_context}"
            )
        version = ON_PURPOSE if wrong else 0
        limits = limits_of(choices, ids, text)
        self.ledger.record(reply.prompt, ids, [0.0] * len(ids), version, role=step.role, limits=limits)
        self._replies.add(step.role, reply, ids, text)
        return reply, ids
