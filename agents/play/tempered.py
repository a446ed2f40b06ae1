"""Temperatures of members: the same agent, which draws some episodes at another temperature than its own."""

from collections.abc import Mapping

from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger


class Tempered:
    """The agent, where episodes of certain keys are drawn at temperatures of their own.

    Their log-probabilities are of those temperatures, and no ratio of the learner's is right for them.

    Args:
        agent: plays all episodes.
        temperatures: key of each episode that is drawn at another temperature -> that temperature.
    """

    def __init__(self, agent: Agent, temperatures: Mapping[EpisodeKey, float]):
        self.agent, self.temperatures, self.name = agent, temperatures, agent.name

    def player(self, key: EpisodeKey, instructions: str) -> AgentPlayer:
        temperature = self.temperatures.get(key)
        if temperature is None:
            return self.agent.player(key, instructions)
        sampling = self.agent.sampling.model_copy(update={"temperature": temperature})
        return AgentPlayer(self.agent, key, instructions, Ledger(), sampling)
