"""The stages of a step, each a registry of named functions: a curriculum draws tasks, four stages give credit.

==========  ==========================================  =======================================================
stage       question                                    function
==========  ==========================================  =======================================================
curriculum  which tasks are played                      ``(Pool, config) -> numbers of tasks``
rewards     who earned what                             ``(TurnBatch, config) -> TurnBatch`` or ``Rewarded``
advantage   compared with what                          ``(TurnBatch, config) -> advantage_K`` or ``Advantage``
modulation  weighted by what                            ``(TurnBatch, advantage_K, config) -> advantage_K``
objective   which loss of the tokens                    ``(Tokens, config) -> TokenLoss``
==========  ==========================================  =======================================================

A function is registered beside its configuration, which carries the name by which a recipe asks for it::

    class CentredConfig(StageConfig):
        name: Literal["centred"] = "centred"

    @ADVANTAGES.register(CentredConfig)
    def centred(batch: TurnBatch, config: CentredConfig) -> FloatK:
        return batch.score_K() - np.nanmean(batch.score_K())

A function that carries something from update to update is registered with ``remembers=True``: it takes what it returned
last time (None at first), and returns it anew beside its result. What it remembers must be plain JSON values, because
it is part of a checkpoint::

    @ADVANTAGES.register(TrackedConfig, remembers=True)
    def tracked(batch: TurnBatch, config: TrackedConfig, memory: Any) -> tuple[FloatK, Any]: ...

A package outside the project does the same in a module that it announces under the entry-point group
``manyturn.plugins``. Every module of a stage's own folder is found without being listed anywhere.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BeforeValidator

from manyturn.envs.contract.options import Options, unknown
from manyturn.envs.contract.registry import load_plugins
from manyturn.trainers.credit.turn_batch import FloatK, FloatT, TurnBatch

Memory = Mapping[str, Any]
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class StageConfig(Options):
    """Base of the configuration of a stage's function. A subclass narrows ``name`` to a Literal of one string."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Columns of the batch, over turns or tokens, without which the function cannot work."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """Columns that it takes into account where they are there."""
    adds: ClassVar[frozenset[str]] = frozenset()
    """Parts that a reward stage adds."""
    by_token: ClassVar[bool] = False
    """Whether an advantage tells the tokens of a turn apart."""
    name: Any  # a str here would forbid the Literals of subclasses to type checkers


class Rewarded(NamedTuple):
    """What a reward function returns if it has more to tell than the batch.

    Attributes:
        batch: the batch with its new rewards.
        diagnostics: name -> figure for the metrics.
    """

    batch: TurnBatch
    diagnostics: Mapping[str, float] = {}


class Advantage(NamedTuple):
    """What an advantage function returns if it has more to tell than the advantage.

    Attributes:
        total_K: the advantage.
        levels: name -> what the advantage is made of (K), kept for traces.
        diagnostics: name -> figure for the metrics.
        token_T: credit of each reply token, where a method tells tokens of a turn apart; total_K is then what stands
            for the turn in traces.
        targets_T: what a value head is to predict at each reply token, NaN where nothing; None: the method uses no
            values.
    """

    total_K: FloatK
    levels: Mapping[str, FloatK] = {}
    diagnostics: Mapping[str, float] = {}
    token_T: FloatT | None = None
    targets_T: FloatT | None = None


class Entry(NamedTuple):
    config_type: type[StageConfig]
    function: Callable[..., Any]
    remembers: bool


class Stage(Generic[R]):
    """A registry of named functions that return R.

    Args:
        kind: what the stage is called in messages.
        package: whose modules register the project's own functions; None if there is none.
    """

    def __init__(self, kind: str, package: str | None):
        self.kind, self.package = kind, package
        self._entries: dict[str, Entry] = {}
        self._loaded = package is None

    def register(self, config_type: type[StageConfig], remembers: bool = False) -> Callable[[F], F]:
        """Decorator: recipes that name ``config_type``'s name run this function."""
        name = _literal_name(config_type)

        def add(function: F) -> F:
            if name in self._entries:
                known = self._entries[name].function
                raise ValueError(
                    f"{self.kind} {name!r} is registered twice, by {known.__module__} and {function.__module__}: "
                    "choose another name"
                )
            self._entries[name] = Entry(config_type, function, remembers)
            return function

        return add

    def names(self) -> list[str]:
        """Every registered name."""
        self._load_package()
        return sorted(self._entries)

    def parse(self, value: Any) -> Any:
        """The configuration that a recipe's value stands for: a name, a table with a name, or a configuration.

        >>> ADVANTAGES.parse({"name": "gigpo", "gamma": 0.9}).gamma
        0.9
        >>> ADVANTAGES.parse("gigpoo")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: unknown advantage 'gigpoo'; did you mean 'gigpo'...? There are ...gigpo, grpo, ...
        """
        if isinstance(value, StageConfig):
            self._entry(value)
            return value
        table = {"name": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise ValueError(f"{value!r} names no {self.kind}: give a name of {', '.join(self.names()) or 'none'}")
        return self._find(table["name"]).config_type.model_validate(dict(table))

    def apply(self, config: StageConfig, *inputs: Any) -> R:
        """Run the function that ``config`` belongs to on ``inputs``."""
        entry = self._entry(config)
        if entry.remembers:
            raise ValueError(f"{self.kind} {config.name!r} remembers: run it with apply_remembering")
        return entry.function(*inputs, config)

    def apply_remembering(self, config: StageConfig, memory: Memory, *inputs: Any) -> tuple[R, Memory]:
        """The same for any function, with what all functions remember; returns that anew beside the result."""
        entry, place = self._entry(config), f"{self.kind} {config.name}"
        if not entry.remembers:
            return entry.function(*inputs, config), memory
        result, remembered = entry.function(*inputs, config, memory.get(place))
        return result, {**memory, place: remembered}

    def _entry(self, config: StageConfig) -> Entry:
        entry = self._find(config.name)
        if type(config) is not entry.config_type:
            raise ValueError(
                f"{type(config).__name__} is not the configuration of {self.kind} {config.name!r}, "
                f"which is {entry.config_type.__name__}"
            )
        return entry

    def _find(self, name: str) -> Entry:
        self._load_package()
        if name not in self._entries:
            load_plugins()
        if name not in self._entries:
            raise ValueError(unknown(self.kind, name, self._entries))
        return self._entries[name]

    def _load_package(self) -> None:
        if self._loaded or self.package is None:
            return
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__, self.package + "."):
            importlib.import_module(module.name)
        self._loaded = True


def _literal_name(config_type: type[StageConfig]) -> str:
    annotation = config_type.model_fields["name"].annotation
    names = get_args(annotation)
    if get_origin(annotation) is not Literal or len(names) != 1:
        raise TypeError(f'{config_type.__name__} needs the field  name: Literal["its name"] = "its name"')
    return names[0]


CURRICULA: Stage[Sequence[int]] = Stage("curriculum", "manyturn.trainers.play.curricula")
REWARDS: Stage[TurnBatch | Rewarded] = Stage("reward stage", "manyturn.trainers.credit.rewards")
ADVANTAGES: Stage[FloatK | Advantage] = Stage("advantage", "manyturn.trainers.credit.advantages")
MODULATIONS: Stage[FloatK] = Stage("modulation", "manyturn.trainers.credit.modulations")
OBJECTIVES: Stage[Any] = Stage("objective", "manyturn.trainers.learn.objectives")

# Types of fields of a larger configuration: given a name, a table or a StageConfig, they hold the StageConfig.
CurriculumField = Annotated[Any, BeforeValidator(CURRICULA.parse)]
RewardField = Annotated[Any, BeforeValidator(REWARDS.parse)]
AdvantageField = Annotated[Any, BeforeValidator(ADVANTAGES.parse)]
ModulationField = Annotated[Any, BeforeValidator(MODULATIONS.parse)]
ObjectiveField = Annotated[Any, BeforeValidator(OBJECTIVES.parse)]
