"""Another reading of the replies: the mean log-probability of a path's tokens under a model that draws nothing.

The policy's own weights read at another temperature, or without the limit to admissible commands; or another model
reads, such as the policy before its training. Source: Li et al. 2016, "A Diversity-Promoting Objective Function for
Neural Conversation Models", arXiv 1510.03055, where a second model ranks what the first one drew.

Differences: theirs reads backwards, from the reply to the message; here tokens of all turns of a path count together,
each reply under the prompt that the policy read.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from manyturn.agents.engine.engine import Engine, GivenReply
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.reply_check import Checked
from manyturn.agents.play.agent import Agent
from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ValueContext
from manyturn.envs.contract.options.registry import Named


class RerankConfig(Named):
    """Mean log-probability of all tokens of the path, as a model reads them that draws nothing."""

    name: Literal["rerank"] = "rerank"
    model: str | None = None
    """Folder or id of the model that reads, of the policy's own vocabulary, such as RUN/checkpoints/step_000000/model;
    unset: the policy's own."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of the distributions that log-probabilities are of."""


@VALUES.register(RerankConfig)
class RerankValue(PlaceValue):
    """Mean log-probability of all tokens of the path, as a model reads them that draws nothing."""

    reads = True

    def __init__(self, context: ValueContext, config: RerankConfig):
        agent, self._temperature = context.agent, config.temperature
        if config.model is not None:
            engine = other_engine(config.model, agent)
            self._engine, self.engines = Checked(engine, agent.template), (engine,)
            return
        self._engine = agent.engine
        if not agent.engine.capabilities.scores:
            raise ValueError(
                "--search.value rerank has the policy's engine read given replies, which it cannot: add "
                "--engine.name transformers"
            )
        if config.temperature == agent.sampling.temperature and agent.config.chooses is None:
            raise ValueError(
                "--search.value rerank would read what the draws have said already: give --search.value.model or "
                "another --search.value.temperature, or take --search.value likelihood, which costs nothing"
            )

    async def of(self, place: SearchPlace) -> float:
        path = [one for one in place.path if one.drawn is not None]
        new = [one for one in path if one.likelihoods is None]
        given = [GivenReply(one.drawn.prompt, one.drawn.reply.ids) for one in new if one.drawn is not None]
        for one, reply, row in zip(new, given, await self._engine.score(given, self._temperature), strict=True):
            one.likelihoods = row
            place.read_tokens += len(reply.prompt) + len(reply.reply)
        logprobs = [number for one in path for number in one.likelihoods or ()]
        return sum(logprobs) / len(logprobs)


def other_engine(word: str, agent: Agent) -> Engine:
    """An engine with another model, which reads what an agent says.

    Raises:
        ValueError: there is no such model, or it cannot read the agent's tokens.
    """
    import torch

    from manyturn.agents.model.language_model import load_pretrained

    if any((Path(word) / name).is_file() for name in ("config.toml", "manifest.json")):
        raise ValueError(f"--search.value.model {word} is a run: name a model of it, RUN/checkpoints/STEP/model")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    language = load_pretrained(word, device)
    if _vocabulary(language.template.tokenizer) != _vocabulary(agent.template.tokenizer):
        raise ValueError(
            f"--search.value.model {word} has another vocabulary than the policy, whose tokens it would misread: "
            "name a model that was made from the same one"
        )
    positions = getattr(language.model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None and positions < agent.config.max_context:
        raise ValueError(
            f"--search.value.model {word} knows {positions} positions, and the policy reads up to agent.max_context = "
            f"{agent.config.max_context}: name a model that knows as many"
        )
    made_for = EngineContext(
        language.model, language.template.end_ids, learns=False, max_context=agent.config.max_context
    )
    return build_engine(TransformersConfig(max_batch=1), made_for)


def _vocabulary(tokenizer: Any) -> dict[str, int]:
    return tokenizer.get_vocab()
