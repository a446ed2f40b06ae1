"""A budget of tokens or money: what was spent is counted reply by reply, and none is asked for once it is used up."""

from typing import Annotated, Any

from pydantic import Field

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.play.episode import Act, Onlooker, Player, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import NOTHING, Spent, Usage
from manyturn.envs.contract.options.options import Options
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


class BudgetConfig(Options):
    """Limits of what an improvement may cost, over all of its rounds and calls."""

    tokens: Annotated[int | None, Field(ge=1)] = None
    """Most tokens of prompts and replies together. Default: no limit."""
    usd: Annotated[float | None, Field(gt=0)] = None
    """Most USD, at endpoint.price_in and endpoint.price_out. Default: no limit."""


class BudgetSpent(RuntimeError):
    """The budget is used up; what was finished is kept."""


class Purse:
    """Spending so far, and its limits.

    Attributes:
        spent: by all replies so far, those of earlier calls included.
    """

    def __init__(self, budget: BudgetConfig):
        self._budget, self.spent = budget, NOTHING

    def check(self) -> None:
        """Raise BudgetSpent if nothing is left."""
        spent, budget = self.spent, self._budget
        tokens = (spent.prompt_tokens or 0) + (spent.reply_tokens or 0)
        if budget.tokens is not None and tokens >= budget.tokens:
            raise BudgetSpent(f"{tokens} tokens use up budget.tokens = {budget.tokens}: give more to go on")
        if budget.usd is not None and (spent.cost or 0.0) >= budget.usd:
            raise BudgetSpent(f"{spent.cost:.4g} USD use up budget.usd = {budget.usd:g}: give more to go on")

    def add(self, usage: Usage | Spent) -> None:
        """Count what was spent."""
        self.spent = self.spent.plus(usage)

    def pay(self, usage: Usage | None) -> None:
        """Count what a reply took. Raises BudgetSpent if that is unknown, so that no budget could be held."""
        if usage is not None:
            self.add(usage)
        is_unknown = usage is None or usage.reply_tokens is None
        for name, limit in (("tokens", self._budget.tokens), ("usd", self._budget.usd)):
            if limit is not None and is_unknown:
                raise BudgetSpent(f"budget.{name} cannot be held: a reply came without its tokens; leave it out")


class Budgeted:
    """Plays as another policy does, as long as there is a budget.

    Before each reply the purse is asked, so that only the replies that are under way at that moment come on top.
    """

    def __init__(self, policy: Policy, purse: Purse):
        self.policy, self.purse, self.name = policy, purse, policy.name

    def __getattr__(self, name: str) -> Any:
        if name == "policy":  # while an object is copied it has no attributes yet
            raise AttributeError(name)
        return getattr(self.policy, name)

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _BudgetedPlayer(self.purse, self.policy.player(key, instructions))


class _BudgetedPlayer:
    def __init__(self, purse: Purse, player: Player):
        self._purse, self._player = purse, player

    @property
    def ledger(self) -> Ledger | None:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        self._purse.check()
        try:
            act = await self._player.act(step, seat)
        except EngineError as error:
            if error.usage is not None:
                self._purse.add(error.usage)
            raise
        self._purse.pay(act.usage)
        return act

    def look(self, step: Answer) -> None:
        if isinstance(self._player, Onlooker):
            self._player.look(step)

    def leave(self) -> None:
        self._player.leave()
