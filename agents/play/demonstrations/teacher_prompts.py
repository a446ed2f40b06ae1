"""Prompts with advice: the agent as it plays, and beside each of its prompts the one that a teacher would have read.

The agent never sees the advice. What it said is judged afterwards by the same weights with the advised prompt in place
of its own (``Ledger.advised``).
"""

from typing import Literal

from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.episode import Act
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import AdvisedPrompt, Ledger
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat

Advice = Literal["expert", "answer"]
LINES = {
    "expert": "A good action here: {}",
    "answer": "The true answer is given by: {}",
}
"""What the teacher reads below the observation: the expert's next action, or the action that gives the true answer."""


class Advised:
    """The agent, whose ledgers keep advised prompts too.

    Args:
        agent: plays.
        advice: who advises, the environment's expert at each turn, or its true answer.
    """

    def __init__(self, agent: Agent, advice: Advice):
        self.agent, self.name = agent, agent.name
        self.advice: Advice = advice

    def player(self, key: EpisodeKey, instructions: str) -> "AdvisedPlayer":
        return AdvisedPlayer(self.agent.player(key, instructions), self.advice)


class AdvisedPlayer:
    """The agent within one episode. The expert is asked before each reply, in the state that the policy has led to."""

    def __init__(self, player: AgentPlayer, advice: Advice):
        self._player, self._advice = player, advice
        self._answer: str | None = None

    @property
    def ledger(self) -> Ledger:
        return self._player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        if step.answer is not None:
            self._answer = step.answer
        advice = await seat.expert() if self._advice == "expert" else self._answer
        if advice is not None:
            advised = step._replace(observation=f"{step.observation}\n\n{LINES[self._advice].format(advice)}")
            prompt = AdvisedPrompt.of(self._player.prompt(advised), self._player.prompt(step))
            self.ledger.advised[len(self.ledger.spans)] = prompt
        return await self._player.act(step, seat)

    def look(self, step: Answer) -> None:
        self._player.look(step)

    def leave(self) -> None:
        self._player.leave()
