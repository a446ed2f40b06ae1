"""The policy's own trust in what it said: the mean log-probability of the tokens on the path to a place.

It sees nothing of the environment but what the policy reads. Source: the ranking of samples by mean log-probability
in Adiwardana et al. 2020, "Towards a Human-like Open-Domain Chatbot", arXiv 2001.09977, section 3.2.

Differences: tokens of all turns of a path count together.
"""

from typing import Literal

from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ValueContext
from manyturn.envs.contract.options.registry import Named


class LikelihoodConfig(Named):
    """Mean log-probability of all tokens that the policy said on the path."""

    name: Literal["likelihood"] = "likelihood"


@VALUES.register(LikelihoodConfig)
class LikelihoodValue(PlaceValue):
    """Mean log-probability of all tokens that the policy said on the path."""

    def __init__(self, context: ValueContext, config: LikelihoodConfig):
        pass

    async def of(self, place: SearchPlace) -> float:
        logprobs = [p for one in place.path if one.drawn is not None for p in one.drawn.reply.logprobs]
        return sum(logprobs) / len(logprobs)
