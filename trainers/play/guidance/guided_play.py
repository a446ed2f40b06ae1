"""Guided play: the agent, where episodes of certain keys read a text below their first observation.

The text stays in the prompt as long as the context shows the first observation. The ledger has what the policy read. A
text that leaves no room for a first reply in ``agent.max_context`` is left out, and the episode counts as unguided.
Where the learner is to read the prompt without the text, a second ledger has the same replies after the plain prompts
(``Ledger.plain``), with the log-probabilities that they were drawn with after the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from manyturn.agents.play.agent import Agent, AgentPlayer, Memories
from manyturn.agents.play.episode import Act, ContextFull, Episode, LimitReached
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import LastPrompt, Ledger
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


def with_guidance(observation: str, text: str) -> str:
    """An observation with the text below it.

    >>> with_guidance("Mill?", "Hint: take red.")
    'Mill?\\n\\nHint: take red.'
    """
    return f"{observation}\n\n{text}"


class Guided:
    """The agent, whose episodes of certain keys read a text.

    Args:
        agent: plays.
        texts: key of each guided episode -> its text.
        keeps_plain: record the replies after the plain prompts too, for a learner that reads these.
    """

    def __init__(self, agent: Agent, texts: Mapping[EpisodeKey, str], *, keeps_plain: bool):
        self.agent, self.texts, self.keeps_plain, self.name = agent, dict(texts), keeps_plain, agent.name

    def player(self, key: EpisodeKey, instructions: str) -> "AgentPlayer | GuidedPlayer":
        player, text = self.agent.player(key, instructions), self.texts.get(key)
        if text is None:
            return player
        record = _PlainRecord(self.agent, instructions) if self.keeps_plain else None
        return GuidedPlayer(player, text, record, lambda: self.texts.pop(key))

    def settle(self, episode: Episode) -> None:
        """Note the text in an episode that has ended, where it read one."""
        if text := self.texts.get(episode.key):
            episode.guidance = text
            if episode.turns:
                episode.turns[0].observation = with_guidance(episode.turns[0].observation, text)


class GuidedPlayer:
    """The agent within one guided episode.

    Args:
        player: reads the text.
        record: of the plain prompts, where the learner reads these.
        leave_out: called where the text does not fit.
    """

    def __init__(self, player: AgentPlayer, text: str, record: "_PlainRecord | None", leave_out: Callable[[], object]):
        self._player, self._text, self._record, self._leave_out = player, text, record, leave_out

    @property
    def ledger(self) -> Ledger:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        try:
            act = await self._act(step, seat)
        except LimitReached:
            if self._record is not None:
                self._record.look(step)
            raise
        if self._record is not None:
            self._record.add(step, self.ledger, act.reply)
        return act

    async def _act(self, step: Answer, seat: Seat) -> Act:
        try:
            return await self._player.act(self._shown(step), seat)
        except ContextFull:
            if self.ledger.spans or not self._text:
                raise
        self._leave_out()
        self._text, self._record, self.ledger.unanswered = "", None, None
        return await self._player.act(step, seat)

    def look(self, step: Answer) -> None:
        self._player.look(self._shown(step))
        if self._record is not None:
            self._record.look(step)

    def leave(self) -> None:
        if self._record is not None and self._record.ledger.spans:
            self.ledger.plain = self._record.ledger
        self._player.leave()

    def _shown(self, step: Answer) -> Answer:
        if self.ledger.spans or not self._text:
            return step
        return step._replace(observation=with_guidance(step.observation, self._text))


class _PlainRecord:
    """The replies of a guided episode after the prompts that the agent would have read without the text."""

    def __init__(self, agent: Agent, instructions: str):
        self._view, self._memories = agent.config.view, Memories(agent, instructions)
        self.ledger = Ledger(is_plain=True)

    def add(self, step: Answer, drawn: Ledger, text: str) -> None:
        """Record the newest reply of a ledger."""
        turn, span = len(drawn.spans) - 1, drawn.spans[-1]
        prompt, reply = self._memories[step.role].prompt(self._view(step)), drawn.reply(turn)
        self.ledger.record(
            prompt,
            reply,
            drawn.reply_logprobs(turn).tolist(),
            span.version,
            drawn.reply_entropies(turn).tolist(),
            step.role,
            drawn.branches[span.branch].limits(span.start, span.end),
        )
        self._memories[step.role].add_reply(prompt, reply, text)

    def look(self, step: Answer) -> None:
        self.ledger.unanswered = LastPrompt(self._memories[step.role].prompt(self._view(step)), step.role)


def as_learnt(episode: Episode) -> Episode:
    """The episode as the learner reads it: with the plain prompts, where these were recorded."""
    if episode.ledger is None or episode.ledger.plain is None:
        return episode
    return replace(episode, ledger=episode.ledger.plain)
