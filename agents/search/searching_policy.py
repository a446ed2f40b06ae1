"""A policy that searches: it tries replies out from snapshots, and plays the path that the search ends with.

A search is over before the first turn is played. Then the seat goes back to the start, and the replies of the path are
said again; an environment that answers otherwise than it did ends the episode in an error. Where the tokens were spent
before the path came to an end, the episode is truncated.
"""

from dataclasses import replace
from typing import Any

from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.episode import Act, TokensSpent
from manyturn.agents.search.explorer import Explorer, SearchStart, SearchTally, compare, repeat
from manyturn.agents.search.method import SEARCHES, SearchConfig
from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, ValueContext
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import NOTHING, Usage
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class Searching:
    """Plays as an agent does, after a search.

    Args:
        agent: draws the replies.
        config: of the search.
        word: the policy as it was named.
        most_turns: limit of turns of environments that have none.

    Attributes:
        search: the options, as plain values, for summaries.

    Raises:
        ValueError: all tries would be equal, or no reply fits into the budget.
    """

    def __init__(self, agent: Agent, config: SearchConfig, word: str, most_turns: int):
        if agent.sampling.temperature == 0:
            raise ValueError(
                "--search has no effect at sampling.temperature = 0, where all tries are equal: set "
                "--sampling.temperature 1, or leave the search out"
            )
        if fault := agent.config.refuse_inner("--search compares actions"):
            raise ValueError(fault)
        if config.tokens < agent.sampling.max_tokens:
            raise ValueError(
                f"--search.tokens {config.tokens} is less than one reply of up to sampling.max_tokens = "
                f"{agent.sampling.max_tokens}: give {agent.sampling.max_tokens} at least"
            )
        self.agent, self.tokens, self.most_turns = agent, config.tokens, most_turns
        self.method = SEARCHES.apply(config)
        self.value = VALUES.apply(config.value, ValueContext(agent, word))
        self.search: dict[str, Any] = config.model_dump(mode="json")
        self.name = f"{agent.name}, {config.name} by {config.value.name} in {config.tokens} tokens"

    def __getattr__(self, name: str) -> Any:
        """Any other attribute, such as options and sampling: that of the agent."""
        if name == "agent":  # while an object is copied it has no attributes yet
            raise AttributeError(name)
        return getattr(self.agent, name)

    def fault_in(self, facts: EnvFacts) -> str | None:
        """The reason for which an environment cannot be searched, with the fix; None if it is possible."""
        return self.value.fault_in(facts)

    def player(self, key: EpisodeKey, instructions: str) -> "SearchPlayer":
        return SearchPlayer(self, key, instructions)


class SearchPlayer:
    """The policy within one episode.

    Attributes:
        measures: what the search took.
    """

    def __init__(self, policy: Searching, key: EpisodeKey, instructions: str):
        self._policy, self._key, self._instructions = policy, key, instructions
        self._path: list[SearchPlace] = []
        self._end: SearchPlace | None = None
        self._player: AgentPlayer | None = None
        self._tally = SearchTally(policy.tokens, read=0 if policy.value.reads else None)

    @property
    def ledger(self) -> Ledger | None:
        return None if self._player is None else self._player.ledger

    @property
    def measures(self) -> dict[str, float]:
        return self._tally.figures()

    async def act(self, step: Answer, seat: Seat) -> Act:
        extra: Usage | None = None
        if self._player is None:
            extra = await self._search(step, seat)
        player = self._player
        assert player is not None and self._end is not None, "the search has made them"
        if not self._path:
            raise self._end.limit or TokensSpent(
                f"the search drew {self._tally.reply} of --search.tokens {self._tally.tokens}, and no path of it ended"
            )
        place = self._path.pop(0)
        assert place.parent is not None, "the start is no part of the path"
        before = place.parent
        if before.drawn is not None and before.drawn.act.cut is None:
            compare(before, step, seat)
        drawn = repeat(player, place, step, seat)
        return drawn.act if extra is None else _with_usage(drawn.act, extra)

    async def _search(self, step: Answer, seat: Seat) -> Usage:
        """Search from the start, and return there; what was drawn beside the path."""
        policy = self._policy
        start = SearchStart(self._key, self._instructions, step, policy.most_turns)
        explorer = Explorer(policy.agent, policy.value, seat, start, self._tally)
        try:
            self._end = await policy.method.run(explorer)
            await explorer.back()
            self._path = self._end.path
            self._player = policy.agent.player(self._key, self._instructions)
        finally:
            explorer.release()
        reply = sum(len(one.drawn.reply.ids) for one in self._path if one.drawn is not None)
        prompt = sum(len(one.drawn.prompt) for one in self._path if one.drawn is not None)
        beside = Usage(self._tally.prompt - prompt, self._tally.reply - reply)
        self._player.ledger.beside = NOTHING.plus(beside)
        return beside

    def leave(self) -> None:
        if self._player is not None:
            self._player.leave()


def _with_usage(act: Act, extra: Usage) -> Act:
    """An act to which the usage of what was drawn beside the path is added, so that an episode counts all of it."""
    own = act.usage or Usage()
    prompt, reply = (
        (own.prompt_tokens or 0) + (extra.prompt_tokens or 0),
        (own.reply_tokens or 0) + (extra.reply_tokens or 0),
    )
    return replace(act, usage=own._replace(prompt_tokens=prompt, reply_tokens=reply))
