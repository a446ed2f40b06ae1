"""The contract between an agent and anything that computes the next tokens: ids in, ids and log-probabilities out."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from pydantic import Field

from manyturn.agents.engine.weight_source import Weights
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts

if TYPE_CHECKING:
    from manyturn.agents.text.choice_decoding import Choices


class EngineError(RuntimeError):
    """The engine failed or answered nonsense. It is never a reward.

    Attributes:
        usage: what it took all the same, where it was counted.
    """

    usage: Usage | None = None


class EngineRefused(EngineError):
    """The engine will not compute this reply, however often it is asked: the episode is not tried again."""


class EngineLost(RuntimeError):
    """Nothing draws any more, for no episode: the run cannot go on, and can be resumed."""


class Sampling(Options):
    """Sampling of replies. There is no top-p or top-k: they would make the engine's log-probabilities differ from the
    learner's."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits; 0 takes the most likely token."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, its end token included."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.temperature > 0:
            return None
        return "sampling.temperature = 0 draws all episodes of a task alike, with nothing to learn from: set it to 1"


class Reply(NamedTuple):
    """One reply of an engine.

    Attributes:
        ids: T token ids; the end token is among them if the reply ended by itself.
        logprobs: T natural log-probabilities at the sampling temperature (at temperature 0: of the logits as they are);
            of a choice, those of the distribution over what is possible.
        finish: "stop" if the reply ended by itself, "length" if it was cut.
        version: policy version of the weights that drew it.
        entropies: T entropies, in nats, of the distributions that the tokens were drawn from, if the engine knows them.
    """

    ids: list[int]
    logprobs: list[float]
    finish: Literal["stop", "length"]
    version: int
    entropies: list[float] | None = None


class GivenReply(NamedTuple):
    """A reply that is given, to be scored: token ids of its prompt, and its own, at least one of each."""

    prompt: Sequence[int]
    reply: Sequence[int]


class Capabilities(NamedTuple):
    """Abilities of an engine. A run that needs one its engine lacks is refused before it begins.

    Attributes:
        keeps_bits: the same episodes give the same log-probabilities to the bit, however long their environments take.
        entropy: replies come with their entropies.
        lora: ``load`` takes the weights of a model with adapters.
        choices: there is ``choose``, token by token.
        commands: ``choose`` draws whole commands too.
        own_weights: it can draw while a learner changes the model that it was made for, and takes new weights by
            ``load`` while episodes are open, as the asynchronous order asks.
        scores: there is ``score``.
    """

    keeps_bits: bool = False
    entropy: bool = False
    lora: bool = False
    choices: bool = False
    own_weights: bool = False
    scores: bool = False
    commands: bool = False


class Engine(Protocol):
    """Computes replies; many requests are in flight together, each awaited by the coroutine of its episode.

    A subclass writes ``generate`` and ``load``, and sets the attributes; the defaults here do for the rest. Any
    exception of ``generate`` ends its episode as an error; one of another method ends the run.

    Attributes:
        vocabulary: token ids are 0..vocabulary-1; a model may have more than its tokenizer, padded to a round size.
        version: policy version of the weights that were loaded last; 0 before the first ``load``.
        capabilities: the same as its configuration's.
        precision: type that it computes in where the learner computes in float32.
        batch_limit: most replies that it computes together, where that may come to less because memory ran out; a run
            that is resumed sets it to what it had come to.
    """

    vocabulary: int
    version: int
    capabilities: Capabilities
    precision: str = "float32"
    batch_limit: int | None = None

    @property
    def wake_bytes(self) -> float:
        """Bytes of the learner's device that must be free for it to wake, or to start; 0 where nothing has to."""
        return 0.0

    @property
    def asleep_bytes(self) -> float:
        """Bytes of the learner's device that it keeps while it sleeps."""
        return 0.0

    async def ready(self) -> None:
        """Find out that it can draw, before anything is played or learnt.

        Raises:
            EngineLost, ConfigError: it cannot.
        """
        return None

    def open(self, key: EpisodeKey) -> None:
        """An episode begins: it may ask from now on, so that an engine knows how many may still ask."""
        return None

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        """Draw the reply to a prompt.

        All randomness comes from ``key.noise_seed(turn)``, so that what is drawn depends on nothing else.

        Args:
            key: of an open episode, which waits for no other reply of this engine.
            turn: number of the turn. Its prompt begins with the one before and its reply where the agent's context
                is the full conversation, and need not where it is not.

        Raises:
            EngineError: there is no reply; the episode is tried again.
            EngineLost: nor is there to any other request; the run ends.
        """
        ...

    async def choose(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: "Choices"
    ) -> Reply:
        """Draw one of several replies: as ``generate``, with each token drawn among those that are possible there.

        Log-probabilities and entropies are those of the distribution over the possible tokens, 0 for a forced one.
        Where whole commands are drawn (``choices.unit``), the reply is distributed as those replies of ``generate``
        are that are possible. A token's log-probability is then given the tokens before it, so that they add up to the
        reply's, and its entropy likewise (``CommandTree.conditionals``).

        Args:
            choices: replies of at most ``sampling.max_tokens``, each with its end token.
        """
        raise EngineError("this engine cannot choose among given replies: leave agent.only_admissible out")

    async def score(self, replies: Sequence[GivenReply], temperature: float = 1.0) -> list[list[float]]:
        """Log-probabilities of replies that are given, under the weights that were loaded last. Nothing is drawn.

        They depend on this call only: it needs no open episode, waits for no other one, and takes no part in a round.
        They are natural, of the distribution over all tokens, and those that ``generate`` returns for what it draws.

        Args:
            temperature: divides the logits; 0 leaves them as they are, as in a ``Reply``.

        Returns:
            A list for each reply, with a number for each of its tokens.

        Raises:
            EngineError: there are none.
        """
        raise EngineRefused("this engine cannot score given replies: take one that can (engine.name = 'transformers')")

    def close(self, key: EpisodeKey) -> None:
        """The episode ended; what was kept for it can go. A request of it that still runs has been cancelled."""
        return None

    async def load(self, weights: Weights, version: int) -> None:
        """Draw with other weights from now on, and forget what was computed with the old ones.

        All or nothing: no reply mixes two versions, and each is labelled with its own. After a load that raised or was
        cancelled every request ends in EngineError until a load succeeds. It may be called while the engine sleeps.
        """
        ...

    async def sleep(self) -> None:
        """No request comes until ``wake``: leave the device's memory to the learner. Does nothing if already asleep."""
        return None

    async def wake(self) -> None:
        """Be ready to draw, with the weights that were loaded last. Awake already, it does nothing."""
        return None

    def figures(self) -> Mapping[str, float]:
        """Figures for the metrics since the last call; each name has its meaning there."""
        return {}

    async def shutdown(self) -> None:
        """No more requests come: end threads, processes and connections."""
        return None


class BaseEngine(Engine):
    """An engine that draws free replies and choices by the same path, ``_reply``."""

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        return await self._reply(key, turn, prompt_ids, sampling, None)

    async def choose(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: "Choices"
    ) -> Reply:
        if choices.longest > sampling.max_tokens:
            raise EngineError(f"a choice of {choices.longest} tokens, where a reply has at most {sampling.max_tokens}")
        return await self._reply(key, turn, prompt_ids, sampling, choices)

    @abstractmethod
    async def _reply(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: "Choices | None"
    ) -> Reply:
        """Draw the reply to a prompt, limited to ``choices`` if there are any."""

    def _forced(self, ids: Sequence[int]) -> Reply:
        """The only possible reply: nothing has to be drawn, and its tokens are computed with the next prompt."""
        zeros = [0.0] * len(ids)
        return Reply(list(ids), zeros, "stop", self.version, list(zeros) if self.capabilities.entropy else None)
