"""Explorer of one episode: draws replies from any place that was reached, within a budget of tokens.

The seat goes back to a place by its snapshot, or by the snapshot before it and the same actions. Each try has sampling
noise of its own, from the episode's key and the number of the try, so that a search does not depend on what other
episodes do. The first try draws what the policy draws without a search.
"""

from dataclasses import dataclass

from manyturn.agents.engine.engine import Reply
from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.episode import LimitReached
from manyturn.agents.search.place import DrawnReply, SearchPlace
from manyturn.agents.search.value import PlaceValue
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import Seat


class TryKey(EpisodeKey):
    """The key of a try: the first draws as the episode itself does."""

    @classmethod
    def of(cls, key: EpisodeKey, number: int) -> "TryKey":
        """The key of a try of an episode, from 0."""
        return cls(key.seed, f"{key.stage}/search/{number}", key.task, key.member)

    def noise_seed(self, turn: int) -> int:
        stage, _, number = self.stage.rpartition("/search/")
        if int(number):
            return super().noise_seed(turn)
        return EpisodeKey(self.seed, stage, self.task, self.member).noise_seed(turn)


@dataclass
class SearchTally:
    """Counts of a search in one episode.

    Attributes:
        tokens: reply tokens at most.
        reply: reply tokens so far.
        prompt: prompt tokens so far; a prompt counts once for each reply.
        tries: paths that were begun, each at a place of the tree.
        ends: ends of the episode that were reached.
        read: tokens that the value had a model read, where it has one read.
    """

    tokens: int
    reply: int = 0
    prompt: int = 0
    tries: int = 0
    ends: int = 0
    read: int | None = None

    def figures(self) -> dict[str, float]:
        """The counts by the names that they have among an episode's measures."""
        read = {} if self.read is None else {"search_read_tokens": float(self.read)}
        return read | {
            "search_reply_tokens": float(self.reply),
            "search_prompt_tokens": float(self.prompt),
            "search_tries": float(self.tries),
            "search_ends": float(self.ends),
        }


@dataclass
class SearchStart:
    """Beginning of an episode.

    Attributes:
        most_turns: limit of turns where the environment has none.
    """

    key: EpisodeKey
    instructions: str
    step: Answer
    most_turns: int


class Explorer:
    """Draws replies, and counts their tokens.

    Args:
        agent: draws.
        value: of places.
        seat: of the episode; it stands at the start.
        start: of the episode.
        tally: counts, and the budget.

    Attributes:
        root: the start.
        is_solved: whether a path to an end has the most value that there can be.
    """

    def __init__(self, agent: Agent, value: PlaceValue, seat: Seat, start: SearchStart, tally: SearchTally):
        self.agent, self.value, self.seat, self.start, self.tally = agent, value, seat, start, tally
        self.root = SearchPlace(start.step, start.step, value=float("-inf"))
        self.is_solved = False
        self._here = self.root
        self._player: AgentPlayer | None = None

    @property
    def has_tokens(self) -> bool:
        """True if a reply of any length would stay within the budget."""
        return self.tally.reply + self.agent.sampling.max_tokens <= self.tally.tokens

    async def draw(self, place: SearchPlace) -> SearchPlace:
        """Draw a reply at a place. Another reply may follow from there, so a snapshot stays behind."""
        await self._go_to(place)
        if place.snapshot is None:
            place.snapshot = await self.seat.snapshot()
        return await self._extend(self._player_at(place), place)

    async def finish(self, place: SearchPlace) -> list[SearchPlace]:
        """Draw replies from a place on until the episode ends, or no reply fits into the budget.

        Returns:
            The new places, in order; none where no reply was possible.
        """
        await self._go_to(place)
        if place.snapshot is None:
            place.snapshot = await self.seat.snapshot()
        player, new = self._player_at(place), list[SearchPlace]()
        while not place.ended and self.has_tokens:
            after = await self._extend(player, place)
            if after is not place:
                new.append(after)
            place = after
        return new

    async def back(self) -> None:
        """Take the seat to the start of the episode."""
        if self._here is not self.root:
            await self._go_to(self.root)

    def release(self) -> None:
        """The search is over."""
        player, self._player = self._player, None
        if player is not None:
            player.leave()

    def _player_at(self, place: SearchPlace) -> AgentPlayer:
        """The agent with the past that it has at a place, as an episode of its own for its engine."""
        key = TryKey.of(self.start.key, self.tally.tries)
        self.tally.tries += 1
        before, self._player = self._player, self.agent.player(key, self.start.instructions)
        if before is not None:  # one is open at any time, so that no batch starts without this episode
            before.leave()
        for one in place.path:
            assert one.parent is not None and one.drawn is not None, "the start is no part of a path"
            repeat(self._player, one, one.parent.step, self.seat)
        return self._player

    async def _extend(self, player: AgentPlayer, place: SearchPlace) -> SearchPlace:
        """Draw a reply and act; the place itself, with its limit, where no reply is possible."""
        try:
            act = await player.act(place.step, self.seat)
        except LimitReached as limit:
            place.limit = limit
            return place
        turn, ledger = place.turn, player.ledger
        logprobs, entropies = ledger.reply_logprobs(turn).tolist(), ledger.reply_entropies(turn).tolist()
        finish = "length" if act.usage is not None and act.usage.cut else "stop"
        reply = Reply(ledger.reply(turn), logprobs, finish, ledger.spans[turn].version, entropies)
        self.tally.reply += len(reply.ids)
        self.tally.prompt += 0 if act.usage is None else act.usage.prompt_tokens or 0
        if act.cut is None:
            step = seen = await self.seat.step(act.action)
        else:
            seen = place.seen
            step = seen._replace(observation=f"{act.cut.notice}\n\n{seen.observation}")
        closed = step.ended or bool(act.cut and act.cut.ends) or turn + 1 >= self.start.most_turns
        after = SearchPlace(step, seen, place, DrawnReply(act, reply, ledger.prompt(turn)), turn + 1, closed=closed)
        place.children.append(after)
        self._here = after
        if self.value.reads_prompt:
            after.prompt = player.prompt(after.step)
        after.value = await self.value.of(after)
        if self.tally.read is not None:
            self.tally.read += after.read_tokens
        self.tally.ends += closed
        self.is_solved |= closed and self.value.most is not None and after.value >= self.value.most
        return after

    async def _go_to(self, place: SearchPlace) -> None:
        """Take the seat to a place. Raises EnvError where the environment is elsewhere after the same actions."""
        if self._here is place:
            return
        path = [place]
        while path[-1].snapshot is None:
            before = path[-1].parent
            assert before is not None, "the start has a snapshot"
            path.append(before)
        snapshot = path[-1].snapshot
        assert snapshot is not None, "the loop ends at one"
        await self.seat.restore(snapshot)
        for one in path[-2::-1]:
            assert one.drawn is not None, "only the start has none"
            if one.drawn.act.cut is None:
                compare(one, await self.seat.step(one.drawn.act.action), self.seat)
        self._here = place


def repeat(player: AgentPlayer, place: SearchPlace, step: Answer, seat: Seat) -> DrawnReply:
    """Let a player say again what led to a place; ``step`` is what it reads before."""
    drawn = place.drawn
    assert drawn is not None, "nothing led to the start"
    player.take_down(step, drawn.prompt, drawn.reply, player.choices(step, seat))
    return drawn


def compare(place: SearchPlace, answer: Answer, seat: Seat) -> None:
    """Raise EnvError where the same actions led elsewhere."""
    seen = place.seen
    if (answer.observation, answer.anchor, answer.ended) != (seen.observation, seen.anchor, seen.ended):
        raise EnvError(
            f"{seat.name} answers turn {place.turn} otherwise than before, after the same actions: it is not a "
            "function of task, seed and actions. Leave --search out, or fix the environment (manyturn check tests "
            "this)"
        )
