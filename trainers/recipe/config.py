"""The configuration of a run: one frozen model, a section for each part, read from TOML and the command line."""

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import tomli_w
from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.engine_config import ENGINES
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.model.model_config import MODELS
from manyturn.agents.model.models.tiny import TinyModel
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.records.task_id_files import named_tasks
from manyturn.envs.contract.env.error_location import OF_A_FILE
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.option_conflicts import refuse_idle, refuse_unfit
from manyturn.envs.contract.options.option_paths import option_paths
from manyturn.envs.contract.options.options import UNFINISHED, ConfigError, OnlyWith, Options, one_line
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS
from manyturn.envs.hosting.local.resource_use import WorkerLimits
from manyturn.trainers.credit.advantages.gigpo import GigpoConfig
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.learn.heads.head_config import ImplicitConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.learner.column import COLUMNS, refuse_columns
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.play.judges.judge_config import JudgeConfig
from manyturn.trainers.play.order.async_config import OrderConfig
from manyturn.trainers.play.order.placement_config import PlacementConfig
from manyturn.trainers.play.rollout.rollout_config import RolloutConfig
from manyturn.trainers.play.tasks.curricula.uniform import UniformConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA
from manyturn.trainers.recipe.logger import LOGGERS
from manyturn.trainers.recipe.role_config import RoleConfig, trained_roles
from manyturn.trainers.recipe.warmup_config import WarmupConfig

_WORKERS = OnlyWith("workers", may_wait=True)


Env = TypeVar("Env", bound="EnvConfig")


class EnvConfig(Options):
    args_place: ClassVar[str] = "env.args"

    @classmethod
    def no_option(cls, key: str) -> str:
        if near_names(key, cls.model_fields, n=1):
            return super().no_option(key)
        return f"unknown Env option {key!r}; an argument of the environment's constructor is {cls.args_place}.{key}"

    id: str
    """Environment: an id such as manyturn/Maze-v0, or FILE.py:Class."""
    args: dict[str, Any] = {}
    """Arguments of the environment's constructor."""
    wrappers: tuple[Annotated[Any, WRAPPERS.field], ...] = ()
    """Reward wrappers, inner first, such as {name = "turn_cost", cost = 0.01}."""
    workers: int = Field(default=0, ge=0)
    """Processes that host the environment, with Ray those of each host; 0 keeps it in this process, or the host's."""
    timeout: Annotated[float, _WORKERS] = Field(default=60.0, gt=0)
    """Seconds after which a worker counts as hung."""
    limits: Annotated[WorkerLimits, _WORKERS] = WorkerLimits()
    """What a worker may hold before it is replaced."""

    @field_validator("args", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError('a table of arguments by name, such as {difficulty = "hard"}; or env.args.NAME for each')
        return value

    @field_validator("args")
    @classmethod
    def _without_unset(cls, args: dict[str, Any]) -> dict[str, Any]:
        """TOML has no word for None, so that an argument which is None would be another one after a resume."""
        return {name: value for name, value in args.items() if value is not None}


class MixedEnvConfig(EnvConfig):
    """One environment of a run in several."""

    args_place: ClassVar[str] = "args"

    name: str = ""
    """Its name in ids of tasks, metrics and tables. Unset: the last part of its id, such as Maze-v0."""
    weight: float = Field(default=1.0, gt=0)
    """Share of a step's tasks, of demonstrations and of validation tasks, against the weights of the others."""

    @model_validator(mode="before")
    @classmethod
    def _id_alone(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        name = self.name or re.split(r"[/:]", self.id)[-1]
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name):
            raise ValueError(f"{name!r} is no name of an environment: give name letters, digits, - and _, at most 40")
        vars(self)["name"] = name
        return self


class EvaluationConfig(Options):
    split: str = "test"
    """Held-out split."""
    limit: int = Field(default=128, ge=1)
    """Tasks on the panel, at most."""
    repeats: int = Field(default=1, ge=1)
    """Episodes of each task."""
    greedy: bool = True
    """Also report the policy that takes the likeliest token: reinforcement often raises sampled success where greedy
    success was high before. It plays the panel once more before and after the run."""
    every: int = Field(default=0, ge=0)
    """Steps between two evaluations on validation tasks; 0 evaluates at the end only."""
    every_limit: Annotated[int, OnlyWith("every", may_wait=True)] = Field(default=64, ge=1)
    """Validation tasks in those."""


class StoppingConfig(Options):
    no_signal: int | None = Field(default=None, ge=1)
    """Steps in a row that teach nothing, every advantage or the gradient being 0, after which the run ends with exit
    code 6, for runs that nobody watches. Unset: it only says so."""


class RunConfig(Options):
    """Everything that decides a run. In synchronous order it gives the same weights each time, to the bit on a CPU."""

    env: EnvConfig | None = None
    """The environment."""
    envs: tuple[MixedEnvConfig, ...] = ()
    """Several environments in place of one, each with the options of env, a name and a weight: one policy learns in all
    of them. A text stands for an id."""
    model: Annotated[Any, MODELS.field] = TinyModel()
    """Which model acts and learns."""
    agent: AgentConfig = AgentConfig()
    roles: dict[str, RoleConfig] = {}
    """Policy of each role of an environment with several, by the role's name. Roles of one name share a policy, names
    are free, and each learns from what its own roles earn. A policy from elsewhere plays and does not learn. Unset: one
    policy plays them all."""
    sampling: Sampling = Sampling()
    engine: Annotated[Any, ENGINES.field] = TransformersConfig()
    """What computes the replies."""
    warmup: WarmupConfig = WarmupConfig()
    order: OrderConfig = OrderConfig()
    """Whether playing and learning take turns, or go on side by side."""
    placement: PlacementConfig = PlacementConfig()
    """In which processes episodes are played and tokens drawn: here, or at hosts and samplers elsewhere."""
    rollout: RolloutConfig = RolloutConfig()
    tasks: tuple[str, ...] | None = None
    """Training tasks: ids, @FILE of ids, failed:FOLDER for those at which the policy of an evaluation failed, or
    tag=NAME. Unset: all of the split train."""
    curriculum: Annotated[Any, CURRICULA.field] = UniformConfig()
    """Which tasks a step plays."""
    judge: JudgeConfig | None = None
    """A judge of what has been played: verdicts on turns or episodes as a part of the reward; unset: none."""
    credit: CreditConfig = CreditConfig(advantage=GigpoConfig())
    """Who earned what: rewards, advantage, modulation."""
    objective: Annotated[Any, OBJECTIVES.field] = ClipConfig(high=0.28)
    """The loss, its aggregation and its regularisers."""
    learner: LearnerConfig = LearnerConfig()
    value: ValueHeadConfig | None = None
    """A critic, for advantages that compare with expected values."""
    progress: ProgressHeadConfig | None = None
    """An estimator of what each turn contributes to the outcome, for SPA."""
    implicit: ImplicitConfig | None = None
    """A second policy whose log-probabilities reward turns, for iStar."""
    columns: tuple[Annotated[Any, COLUMNS.field], ...] = ()
    """Options of columns that stages of credit need; without an entry a column has its defaults."""
    evaluation: EvaluationConfig = EvaluationConfig()
    stopping: StoppingConfig = StoppingConfig()
    """When the run ends before its last step."""
    loggers: tuple[Annotated[Any, LOGGERS.field], ...] = ()
    """What receives the metrics besides metrics.jsonl: csv, tensorboard, trackio, wandb, or a plugin's."""
    keep_tokens: bool = False
    """Keep the ids of all tokens that were read and said in each step, in ledgers/ of the run's folder, for
    ``manyturn trajectories export``. The tables have the text and the log-probability of each token without it."""
    steps: int = Field(default=60, ge=0)
    """Reinforcement-learning steps."""
    seed: int = Field(default=0, ge=0)
    """All randomness of the run derives from it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where model and learner run."""
    threads: int = Field(default=1, ge=0)
    """CPU threads of the model; 1 is reproducible to the bit, and so is any number where a tiny model makes passes
    side by side; 0 uses all cores."""
    checkpoint_every: int = Field(default=10, ge=1)
    """Steps between two checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """How many checkpoints stay on disk, the newest ones; the end of a warm-up stays besides."""

    @field_validator("tasks", mode="before")
    @classmethod
    def _one_task(cls, value: Any) -> Any:
        return (str(value),) if isinstance(value, str | int) else value

    @model_validator(mode="before")
    @classmethod
    def _options_of_an_entry(cls, data: Any) -> Any:
        env = data.get("env") if isinstance(data, Mapping) and data.get("envs") else None
        if isinstance(env, Mapping) and env and "id" not in env:
            raise ValueError(f"env.{next(iter(env))} is of one environment: give it in an entry of envs")
        return data

    @model_validator(mode="after")
    def _names_environments(self) -> Self:
        names = [entry.name for entry in self.envs]
        if self.env is None and len(names) < 2:
            raise ValueError("no environment: name one as env.id, or two and more as envs")
        if self.env is not None and names:
            raise ValueError(f"env.id = {self.env.id!r} and envs name environments: leave one of them out")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two environments of envs are called {twice!r}: give each a name")
        return self

    @property
    def environments(self) -> dict[str, EnvConfig]:
        """Name -> environment, of one or of several."""
        if self.env is not None:
            return {self.env.id: self.env}
        return {entry.name: entry for entry in self.envs}

    @property
    def env_title(self) -> str:
        """The environment's id, or the names of several."""
        return " + ".join(self.environments)

    @property
    def trained_roles(self) -> dict[str, tuple[str, ...]]:
        """Each policy that [roles] names and the run trains -> the roles that it plays."""
        return trained_roles(self.roles)

    @property
    def weights(self) -> dict[str, float]:
        """Name -> weight of each environment of several; empty where there is one."""
        return {entry.name: entry.weight for entry in self.envs}

    @model_validator(mode="after")
    def _defaults_fit_the_model(self) -> Self:
        vars(self).update(self._fitting(None))
        return self

    @model_validator(mode="after")
    def _combination_makes_sense(self, info: ValidationInfo) -> Self:
        if info.context != UNFINISHED:
            refuse_unfit(self)
        return self

    def fitted(self, env: EnvFacts, device: str | None = None) -> Self:
        """The same with defaults that fit the environment too, for whatever nobody gave.

        Args:
            device: cpu or cuda, which ``device`` has led to; None: not known yet.
        """
        return self.model_copy(update=self._fitting(env, device))

    def _fitting(self, env: EnvFacts | None, device: str | None = None) -> dict[str, Any]:
        """Sections and entries with the engine's and the model's defaults in place of what nobody gave."""
        sections: dict[str, Any] = {}
        run = self if device is None else self.model_copy(update={"device": device})
        defaults = [part.defaults(run, env).items() for part in (self.order, self.engine, self.model)]
        for name, value in (entry for entries in defaults for entry in entries):
            section = sections.get(name, getattr(self, name))
            if isinstance(section, Options):
                sections[name] = section.with_defaults(value)
            elif name not in self.model_fields_set:
                sections[name] = value
        return sections

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        reasons = (self._refuse_roles(env), self._refuse_mixture(), self._refuse_mistakes())
        return next(filter(None, reasons), None) or refuse_columns(self, env)

    def _refuse_mixture(self) -> str | None:
        """Refuse options that are of one environment."""
        if not self.envs:
            return None
        if self.warmup.imitates and self.warmup.trajectories is not None:
            return "warmup.trajectories are of one environment, and envs names several: leave it out"
        if self.curriculum.labels and len(set(self.weights.values())) > 1 and not self.warmup.imitates:
            return (
                f"weights of envs have no effect: curriculum {self.curriculum.name} chooses the environments; leave "
                "weights or the curriculum out"
            )
        if self.placement.hosts or self.placement.kind == "ray":
            return (
                f"placement.kind = {self.placement.kind!r} has hosts play one environment, and envs names several: "
                "leave hosts out, and give each of envs workers"
            )
        return None

    def _refuse_mistakes(self) -> str | None:
        if not (self.warmup.invalid and self.agent.only_admissible):
            return None
        return (
            "warmup.invalid shows how to recover from invalid replies, which agent.only_admissible makes impossible: "
            "leave one of them out"
        )

    def _refuse_roles(self, env: EnvFacts | None) -> str | None:
        """At least one policy learns; every role has a policy, and nothing else has one."""
        if not self.roles:
            return None
        if not self.trained_roles:
            players = sorted({role.policy for role in self.roles.values()})
            return f"[roles] gives every role to {' and '.join(players)}, and no policy would learn: name one"
        if env is None or set(self.roles) == set(env.roles):
            return None
        if len(env.roles) == 1:
            return f"[roles] has no effect: an episode of {env.name} has one role; leave the section out"
        return (
            f"[roles] names {', '.join(sorted(self.roles))}, but those who act in {env.name} are "
            f"{', '.join(env.roles)}: give each a policy"
        )


CHOICES = {"env": "id"} | {
    place.name: "name" for place in option_paths(RunConfig) if place.parts is not None and not place.many
}
"""Places where a text alone chooses, such as agent.context, and the entry that it stands for."""


def configure(recipe: dict[str, Any], *layers: dict[str, Any]) -> RunConfig:
    """The configuration of a recipe with changes on top, later ones first; entries that would do nothing are refused.

    What nobody gives has its default, which fits the model (``ModelConfig.defaults``). Which layer gives an entry makes
    no difference.

    Args:
        recipe: values as in TOML.
        layers: changes, such as the environment and the command line's options.
    """
    merged = parts_as_tables(recipe)
    for layer in map(parts_as_tables, layers):
        merged = overlay(without_replaced_envs(merged, layer), layer)
    config = parse_config(merged)
    for layer in layers:
        refuse_idle(config, layer)
    return config


def names_envs(values: Mapping[str, Any]) -> bool:
    """True if a recipe names its environment, or several."""
    return _names_one(values) or bool(values.get("envs"))


def without_replaced_envs(below: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the environments that a layer above it replaces: one by several, or several by one.

    >>> without_replaced_envs({"env": {"id": "a"}, "steps": 3}, {"envs": ["b", "c"]})
    {'steps': 3}
    """
    gone = "env" if layer.get("envs") else "envs" if _names_one(layer) else None
    return {name: value for name, value in below.items() if name != gone}


def _names_one(values: Mapping[str, Any]) -> bool:
    return isinstance(env := values.get("env"), Mapping) and "id" in env


def parts_as_tables(layer: Mapping[str, Any]) -> dict[str, Any]:
    """A layer in which what a text alone chooses is a table, so that other layers can add options.

    >>> parts_as_tables({"agent": {"context": "window"}, "device": "cpu"})
    {'agent': {'context': {'name': 'window'}}, 'device': 'cpu'}
    """
    named = dict(layer)
    for place, key in CHOICES.items():
        *sections, last = place.split(".")
        table: Any = named
        for section in sections:
            if not isinstance(table.get(section), Mapping):
                break
            table[section] = dict(table[section])
            table = table[section]
        else:
            if isinstance(table.get(last), str):
                table[last] = {key: table[last]}
    if isinstance(roles := named.get("roles"), Mapping):
        named["roles"] = {n: {"policy": role} if isinstance(role, str) else role for n, role in roles.items()}
    return named


def parse_config(values: dict[str, Any], context: dict[str, Any] | None = None) -> RunConfig:
    """Check a configuration; unknown or wrong entries raise ConfigError in one line each.

    Args:
        context: UNFINISHED leaves combinations unchecked, of which changes on top may still fix one.
    """
    try:
        return RunConfig.model_validate(values, context=context)
    except ValidationError as error:
        raise ConfigError(one_line(error)) from None


def read_toml(path: Path) -> dict[str, Any]:
    """A recipe's values."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no file {path}: name a TOML file that exists") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deep to be a configuration: fix the file") from None


def to_toml(config: RunConfig) -> str:
    """The configuration as a recipe; entries that are unset are left out."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def part_origins(config: BaseModel) -> dict[str, str]:
    """Names of the parts that were registered outside of this project -> the module, or the file of a script."""
    origins = dict[str, str]()
    for _, value in config:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, BaseModel):
                origins |= part_origins(part)
            if isinstance(part, Named) and not (module := type(part).__module__).startswith("manyturn."):
                file = getattr(sys.modules.get(module), "__file__", None)
                is_script = module == "__main__" or module.startswith(OF_A_FILE)
                origins[part.name] = Path(file).name if file and is_script else module.partition(".")[0]
    return origins


def located(config: RunConfig) -> RunConfig:
    """The configuration with absolute paths, so that a run can be resumed and evaluated from another folder.

    Ids take the place of the files and folders that name tasks: these may change. Raises TaskChoiceError.
    """
    env = None if config.env is None else _located(config.env)
    envs = tuple(map(_located, config.envs))
    warmup = config.warmup
    for name in ("from_run", "trajectories"):
        if (place := getattr(warmup, name)) is not None:
            warmup = warmup.model_copy(update={name: str(Path(place).resolve())})
    rollout, replay = config.rollout, config.rollout.replay
    if replay is not None and replay.source is not None:
        there = replay.model_copy(update={"source": str(Path(replay.source).resolve())})
        rollout = rollout.model_copy(update={"replay": there})
    tasks = None if config.tasks is None else named_tasks(config.tasks, config.env_title)
    roles = {name: role.located() for name, role in config.roles.items()}
    places = {
        "env": env,
        "envs": envs,
        "model": config.model.located(),
        "warmup": warmup,
        "rollout": rollout,
        "tasks": tasks,
        "roles": roles,
    }
    return config.model_copy(update=places)


def _located(env: Env) -> Env:
    """An environment with the absolute path of its file."""
    file, colon, name = env.id.rpartition(":")
    if not (colon and file.endswith(".py")):
        return env
    return env.model_copy(update={"id": f"{Path(file).resolve()}:{name}"})
