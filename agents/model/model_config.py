"""Model registry, the base of model options, and the context that a builder takes.

A model is its options and a function that builds or loads it::

    class MineConfig(ModelConfig):
        name: Literal["mine"] = "mine"

    @MODELS.register(MineConfig)
    def mine(context: ModelContext, config: MineConfig) -> LanguageModel: ...

A builder's module must not import torch: configurations are checked without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.tools.tool_prompt import without_tools

if TYPE_CHECKING:
    import torch


class ModelError(ValueError):
    """The model cannot be loaded or used; the text says what would help."""


class ModelConfig(Named):
    """Base of the options of a model. A subclass narrows ``name`` to a Literal of one string."""

    @property
    def label(self) -> str:
        """Short name of the model."""
        return self.name

    @property
    def vocabulary_tasks(self) -> int:
        """Training tasks whose texts the builder is given; 0 for a model that has its own words."""
        return 0

    @property
    def preparation(self) -> str | None:
        """Notice of a step that takes long before the model is loaded; None where none does."""
        return None

    def located(self) -> Self:
        """The same options, with paths that hold from any folder."""
        return self

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """Defaults for a run of this model, by section, for entries that are not set.

        An entry may depend on what was given of others: ``run.learner.model_fields_set`` says what was. It is asked
        when the configuration is complete, and again when the environment is open.

        Args:
            run: the configuration of the run, a ``RunConfig``, with what was given and the defaults of its classes.
            env: its environment; None while only the configuration is known.
        """
        return {"sampling": {"max_tokens": run.agent.reply_format.reply_tokens(tools=has_tools(env))}}


def has_tools(env: EnvFacts | None) -> bool:
    """True if an environment offers agents tools; False while that is unknown."""
    return env is not None and bool(without_tools(env.instructions)[1])


@dataclass(frozen=True)
class ModelContext:
    """The run that a model is built for.

    Attributes:
        device: where it goes.
        trainable: whether its weights are to be learnt, so that they must be float32; adapters do not count.
        texts: what the environment says and what can be said to it, from training tasks, where the options ask for it.
        seed: of the run; random weights depend only on it.
        max_context: longest sequence, in tokens.
    """

    device: "torch.device"
    trainable: bool = False
    texts: Sequence[str] = ()
    seed: int = 0
    max_context: int = 2048


MODELS: Registry[Any] = Registry("model", "manyturn.agents.model.models")  # each builds a LanguageModel
