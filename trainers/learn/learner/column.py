"""Columns of a batch: numbers of turns or reply tokens that a stage of credit needs and the batch does not have.

A supplier is registered next to its options, in a file of its own or next to the stage that needs it::

    class SurpriseConfig(ColumnConfig):
        name: Literal["surprise"] = "surprise"

    @COLUMNS.register(SurpriseConfig)
    def surprise(step: PlayedStep, config: SurpriseConfig) -> Supplied:
        return Supplied(token_columns={"surprise": -step.reading.at_replies(step.reading.logprob)})

A stage that says ``needs = frozenset({"surprise"})`` then finds ``batch.token_column("surprise")``. Only what a stage
needs is supplied, and what it ``uses`` where it can be had. A supplier with ``remembers=True`` carries plain values
from step to step, as stages do. Options other than the defaults are set in ``[[columns]]``.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.options.plugins import load_plugins
from manyturn.envs.contract.options.registry import Memory, Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.token_limits import Extent
from manyturn.trainers.credit.batch.turn_batch import FloatK, FloatT, TurnBatch

if TYPE_CHECKING:
    from manyturn.agents.play.agent import Agent
    from manyturn.agents.play.episode import Episode
    from manyturn.agents.play.fork import Fork
    from manyturn.agents.tokens.episode_key import EpisodeKey
    from manyturn.trainers.learn.learner.learner import Learner
    from manyturn.trainers.learn.passes.forward import Place
    from manyturn.trainers.learn.reading.pre_update_pass import StepReading


class ColumnConfig(Named):
    """Base of the options of a supplier. A subclass narrows ``name`` to a Literal of one string.

    ``refuse`` says why the supplier cannot do it in a run. It reads on after "STAGE needs the column NAME, which".
    """

    gives: ClassVar[frozenset[str]] = frozenset()
    """Columns that it supplies; left out: one, of its own name."""
    method: ClassVar[str | None] = None
    """Method of the environment that the column is, by which messages name it."""
    hidden: ClassVar["Place | None"] = None
    """Where the reading keeps hidden states for it."""

    @classmethod
    def idle(cls, run: Any) -> str | None:
        """The reason for which an entry that only serves this supplier is in vain: no stage of the run asks for it."""
        return None


class PlayedStep(NamedTuple):
    """The input of a supplier: a step of one policy, before its updates.

    Attributes:
        reading: what the policy thinks of what it said.
        batch: K turns and T reply tokens of E episodes, without the columns that are supplied.
        episodes: the same E episodes.
        agent: the policy as it plays: reply format, chat template, sampling.
        learner: the policy as it learns.
        longest: the most tokens that the run lets a "reply" and an "episode" have.
        temperatures: key of each episode that was drawn at another temperature than the agent's -> that temperature.
        forks: key of each episode that is a branch of another one -> where it forks.
    """

    reading: "StepReading"
    batch: TurnBatch
    episodes: "Sequence[Episode]"
    agent: "Agent"
    learner: "Learner"
    longest: Mapping[Extent, int] = {}
    forks: "Mapping[EpisodeKey, Fork]" = {}
    temperatures: "Mapping[EpisodeKey, float]" = {}


class Supplied(NamedTuple):
    """The output of a supplier.

    Attributes:
        columns: name -> a number for each turn (K).
        token_columns: name -> a number for each reply token (T), turn after turn in the order of the batch.
        figures: name -> figure for the metrics.
    """

    columns: Mapping[str, FloatK] = {}
    token_columns: Mapping[str, FloatT] = {}
    figures: Mapping[str, float] = {}


COLUMNS: Registry[Supplied] = Registry("column", "manyturn.trainers.learn.columns")


def suppliers(run: Any, env: EnvFacts) -> list[ColumnConfig]:
    """The suppliers that a run needs, and the optional ones that it can have.

    Args:
        run: a ``RunConfig`` that was not refused.
        env: its environment.
    """
    columns = run.credit.needs | run.credit.uses
    supplier_of = _names(columns)
    options = [options_of(name, run) for name in dict.fromkeys(supplier_of[column] for column in sorted(columns))]
    return [supplier for supplier in options if supplier.refuse(run, env) is None]


def with_columns(
    step: PlayedStep, suppliers: Sequence[ColumnConfig], memory: Memory
) -> tuple[TurnBatch, dict[str, float], Memory]:
    """The batch with the columns of these suppliers, their figures, and what they remember.

    Args:
        memory: what they remembered last time.
    """
    columns, token_columns, figures = dict[str, FloatK](), dict[str, FloatT](), dict[str, float]()
    for supplier in suppliers:
        supplied, memory = COLUMNS.apply_remembering(supplier, memory, step)
        columns |= supplied.columns
        token_columns |= supplied.token_columns
        figures |= supplied.figures
    return replace(step.batch, columns=columns, token_columns=token_columns), figures, memory


def refuse_columns(run: Any, env: EnvFacts | None) -> str | None:
    """The reason for which a run's columns do not fit its stages of credit: one is missing, or supplied in vain."""
    needed, columns = run.credit.needs, run.credit.needs | run.credit.uses
    supplier_of = _names(columns)
    for column, stage in columns.items():
        if column not in supplier_of:
            return f"{stage} needs the {unknown('column', column, supplier_of)}"
    for column, stage in needed.items():
        supplier = options_of(supplier_of[column], run)
        if reason := supplier.refuse(run, env):
            return f"{stage} needs {supplier.method or f'the column {column!r}'}, which {reason}"
    names = [supplier.name for supplier in run.columns]
    if twice := [name for name in names if names.count(name) > 1]:
        return f"columns names {twice[0]} twice: put its options into one entry"
    idle = set(supplier_of.values()) - {supplier_of[column] for column in columns}
    for supplier in run.columns:
        if supplier.name in idle:
            return f"columns holds options of {supplier.name}, which no stage of credit needs: leave them out"
    reasons = (_config_type(name).idle(run) for name in sorted(idle))
    return next((reason for reason in reasons if reason), None)


def _names(columns: Collection[str]) -> dict[str, str]:
    """Column -> name of its supplier, of all that are known; plugins are loaded where one is wanted that is not."""
    names = _given()
    if not set(columns) <= names.keys():
        load_plugins()
        names = _given()
    return names


def _given() -> dict[str, str]:
    supplier_of: dict[str, str] = {}
    for name in COLUMNS.names():
        for column in _config_type(name).gives or {name}:
            if column in supplier_of:
                raise ValueError(f"the column {column} has two suppliers, {supplier_of[column]} and {name}: rename one")
            supplier_of[column] = name
    return supplier_of


def _config_type(name: str) -> type[ColumnConfig]:
    config_type = COLUMNS.entry(name).config_type
    if not issubclass(config_type, ColumnConfig):
        raise TypeError(f"the options of the column {name} are a {config_type.__name__}: derive them from ColumnConfig")
    return config_type


def options_of(name: str, run: Any) -> ColumnConfig:
    """A supplier's options: the run's own, or the defaults."""
    return next((options for options in run.columns if options.name == name), None) or COLUMNS.parse(name)
