"""Policies by the words that name them on the command line."""

import importlib.util
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ValidationError

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.evaluation.evaluate import held_out_guard
from manyturn.agents.evaluation.replay_policy import Replay
from manyturn.agents.experience.experienced_policy import Experienced
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking
from manyturn.agents.experience.retrieval.rankings.bm25 import Bm25Config
from manyturn.agents.experience.store import Experience
from manyturn.agents.model.model_config import ModelError
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.agents.play.episode import Policy
from manyturn.agents.play.python_policy import policy_in_file
from manyturn.agents.play.role_policy import Cast
from manyturn.agents.records.folder_suggestion import near_folder
from manyturn.agents.search.method import SEARCHES
from manyturn.agents.search.searching_policy import Searching
from manyturn.api import critic_value as critic_value  # registers a value of searches
from manyturn.api.task_panel_file import as_toml
from manyturn.envs.contract.options.options import ConfigError, Options, one_line, unknown
from manyturn.envs.contract.registration.env_registry import is_file
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.envs.contract.tasks.panel import Panel, portable_name
from manyturn.envs.users.endpoint.protocols.registry import OPENAI, PROTOCOLS, endpoint_model, is_endpoint
from manyturn.terminal.overrides import OverrideError, changed, chosen
from manyturn.trainers.play.judges import judged_place as judged_place  # registers a value of searches
from manyturn.trainers.recipe.role_config import ENDPOINT_AGENT, MODEL_AGENT, RoleConfig, RoleKind

if TYPE_CHECKING:
    from manyturn.agents.model.language_model import LanguageModel
    from manyturn.trainers.recipe.config import EnvConfig
    from manyturn.trainers.run.setup.saved_policy import SavedRun

# What plays -> how it is made to act unless asked otherwise; a run acts as it was trained.
USUAL_AGENTS = {"evaluate MODEL": MODEL_AGENT, "evaluate openai:MODEL": ENDPOINT_AGENT}
_ENGINE = TransformersConfig()
_NO_ENDPOINT = "only openai:MODEL, openai-responses:MODEL and anthropic:MODEL ask an endpoint"
_HOSTED = re.compile(
    r"(?:gpt-|chatgpt|o[134](?:-|$)|claude-|gemini-|grok-|deepseek-(?:chat|reasoner)|mistral-)[\w.:-]*"
)
PolicyOptions = Mapping[str, Any]


class EvaluateConfig(Options):
    """Options of the policies of an evaluation, by section."""

    agent: AgentConfig = MODEL_AGENT
    sampling: Sampling = Sampling()
    engine: Annotated[Any, ENGINES.field] = _ENGINE
    endpoint: Endpoint = Endpoint()
    roles: dict[str, RoleConfig] = {}
    """Other policies for roles of a run, by the role's name."""
    retrieval: Annotated[Any, RETRIEVALS.field] = Bm25Config()
    """How entries of an experience are found, if not as in the improvement that made it."""
    search: Annotated[Any, SEARCHES.optional_field] = None
    """A search before each episode is played: best_of_n, beam, tree, or a plugin's. Unset: none."""


SECTIONS = tuple(EvaluateConfig.model_fields)


@dataclass(frozen=True)
class Candidate:
    """A policy to be evaluated.

    Attributes:
        env: the environment that it was trained on, with its arguments and wrappers, if any.
        env_identity: of that environment; None where it is unknown.
        seen: contents of the tasks that it was trained on.
        max_turns: the turn limit of environments that have none of their own.
        engines: those that it draws with, to be shut down when it has played.
        homes: the environments of a policy that was trained in several, by name; empty for others.
        foreign_code: environments that are code, with their arguments, where this account did not begin the run.
        experience: what it is shown; ``shown`` makes it so.
    """

    policy: Policy
    env: str | None = None
    env_args: Mapping[str, Any] | None = None
    wrappers: Sequence[Any] = ()
    env_identity: EnvIdentity | None = None
    seen: frozenset[str] = frozenset()
    max_turns: int = 100
    engines: Sequence[Engine] = ()
    homes: "Mapping[str, EnvConfig]" = field(default_factory=dict)
    foreign_code: Sequence[tuple[str, Mapping[str, Any]]] = ()
    experience: Experience | None = None

    def shown(self, experience: Experience, ranking: Ranking) -> "Candidate":
        """The policy with an experience, whose entries a ranking finds."""
        return replace(self, policy=Experienced(self.policy, experience, ranking), experience=experience)

    def guard(self, panel: Panel) -> None:
        """Raise NotHeldOut if a task of a panel has a part in what the policy has learnt, or is shown."""
        held_out_guard(panel, self.seen)
        if self.experience is not None:
            held_out_guard(panel, self.experience.contents, "the experience rests")

    def in_env(self, env: str | None) -> "Candidate":
        """The policy with that of its several environments which a name or an id means; itself where it has one.

        Raises:
            ValueError: it has several, and none or more than one is meant.
        """
        names = ", ".join(self.homes)
        if not self.homes:
            return self
        if env is None:
            raise ValueError(f"which environment? The policy was trained in {names}: add --env with one of them")
        meant = [name for name, home in self.homes.items() if portable_name(home.id) == portable_name(env)]
        meant = [env] if env in self.homes else meant
        if len(meant) > 1:
            raise ValueError(f"{env} is {' and '.join(meant)} in the run: name one of them as --env")
        if not meant:
            return replace(self, homes={})
        home, identity = self.homes[meant[0]], self.env_identity
        own = None if identity is None else identity.members.get(meant[0])
        return replace(self, env=home.id, env_args=home.args, wrappers=home.wrappers, env_identity=own, homes={})


def find_policy(word: str, options: PolicyOptions) -> Candidate:
    """The policy that a word names.

    Args:
        word: expert, random, replay:FOLDER, FILE.py:POLICY, PROTOCOL:MODEL, a run's folder, a checkpoint, or a model's
            folder, GGUF file or id.
        options: options by section, as ``parse_overrides`` found them: agent, sampling, engine, endpoint, search.

    Raises:
        ValueError: there is no such policy, or an option does not exist or would have no effect on it.
    """
    if word in SCRIPTS:
        _refuse(options, SECTIONS, f"{word} draws no tokens")
        return Candidate(SCRIPTS[word])
    if word.lower() in SCRIPTS and not Path(word).exists():
        raise ValueError(f"there is no policy {word}: did you mean {word.lower()}?")
    if word in ("replay", "replay:"):
        raise ValueError("which evaluation? Write replay:FOLDER, a folder of manyturn evaluate POLICY --out FOLDER")
    if word.startswith("replay:"):
        _refuse(options, SECTIONS, f"{word} draws no tokens")
        return Candidate(Replay.of(Path(word.removeprefix("replay:"))))
    if is_file(word):
        _refuse(options, SECTIONS, f"{word} is called as it is")
        return Candidate(policy_in_file(word))
    if is_endpoint(word) or word in PROTOCOLS:
        named = f"{word.partition(':')[0]}:MODEL"
        _refuse(options, ("engine",), f"{named} asks an endpoint")
        _refuse(options, ("roles",), f"{named} plays every role")
        _refuse(options, ("search",), f"{named} gives no tokens to say again; name a run or a model here")
        return _behind_endpoint(word, options)
    _refuse(options, ("endpoint",), _NO_ENDPOINT)
    folder = Path(word).resolve() if Path(word).exists() else Path(word)
    if is_run(folder):
        return _after_search(_trained(folder, options), word, options)
    _refuse(options, ("roles",), "a model plays every role")
    if folder.is_file() and folder.suffix != ".gguf":
        also = f"{word}:POLICY, " if word.endswith(".py") else ""
        raise ValueError(f"{word} is a file: name {also}a run's folder, a checkpoint, a model's folder, or a GGUF file")
    if not folder.exists() and _is_path(word):
        raise ValueError(_no_folder(Path(word)))
    if not folder.exists() and _HOSTED.fullmatch(word):
        protocol = "anthropic" if word.startswith("claude-") else OPENAI
        address = PROTOCOLS[protocol].address
        raise ValueError(f"{word} is a model at an endpoint: write {protocol}:{word}, and set {address}")
    if not folder.exists() and importlib.util.find_spec("torch") is None:
        raise ValueError(f"{_no_folder(Path(word))}; a model's id needs pip install 'manyturn[train]'")
    return _after_search(_model(word, options), word, options)


def _after_search(candidate: Candidate, word: str, options: PolicyOptions) -> Candidate:
    """The policy with the search that options name, if they name one.

    Raises:
        ValueError: the policy cannot search, or the search would have no effect.
    """
    if "search" not in options:
        return candidate
    agent = candidate.policy
    if not isinstance(agent, Agent):
        raise OverrideError("--search has no effect on a run of several roles: evaluate it without, or one of one role")
    given = options["search"]
    if not isinstance(given, Mapping) or "name" not in given:
        raise OverrideError(f"--search names no method: add --search.name with one of {', '.join(SEARCHES.names())}")
    try:
        config = SEARCHES.parse(given)
    except ValidationError as error:
        raise OverrideError(one_line(error, "search")) from None
    searching = Searching(agent, config, word, candidate.max_turns)
    return replace(candidate, policy=searching, engines=[*candidate.engines, *searching.value.engines])


def sections_of(word: str) -> tuple[str, ...]:
    """The sections of options that have an effect on the policy that a word names."""
    if word in SCRIPTS or word.startswith("replay:") or is_file(word):
        return ()
    if is_endpoint(word):
        return ("agent", "sampling", "endpoint")
    own = ("sampling", "engine", "roles") if is_run(Path(word).resolve()) else ("agent", "sampling", "engine")
    return (*own, "search")


def is_run(folder: Path) -> bool:
    """True for a run's folder, one of its checkpoints, or the model in that."""
    checkpoint = folder.parent if folder.name == "model" else folder
    if (folder / "config.toml").is_file():
        return True
    return (checkpoint / "manifest.json").is_file() and (checkpoint / "state.json").is_file()


def _behind_endpoint(word: str, options: PolicyOptions) -> Candidate:
    from manyturn.agents.play.endpoint.options import EndpointSampling
    from manyturn.agents.play.endpoint.policy import OpenAIPolicy

    protocol, model = endpoint_model(word)
    config = changed(ENDPOINT_AGENT, "agent", options.get("agent", {}))
    sampling = changed(EndpointSampling(), "sampling", given := options.get("sampling", {}))
    sampling.model_fields_set.intersection_update(given)  # a protocol leaves out some of what was not given
    return Candidate(
        OpenAIPolicy(model, config, sampling, changed(Endpoint(), "endpoint", options.get("endpoint", {})), protocol)
    )


def _trained(folder: Path, options: PolicyOptions) -> Candidate:
    from manyturn.trainers.run.loop.code_signature import foreign_code, foreign_partners
    from manyturn.trainers.run.setup.saved_policy import saved_run

    _refuse(options, ("agent",), "a run acts as it was trained to, see its config.toml")
    run = saved_run(folder)
    assert run is not None, "the folder was looked at"
    code = foreign_code(run.path, run.config)
    for role, entry in foreign_partners(run.path, run.config).items():
        if role not in options.get("roles", {}):
            raise ConfigError(
                f"{run.path} was not begun by this account, and {entry.policy} plays {role} in it: add "
                f"{_option_of(role, entry)} if you trust it, and another policy otherwise"
            )
    run = _with_partners(run, options.get("roles", {}))
    config, state = run.config, run.state
    sampling = changed(config.sampling, "sampling", options.get("sampling", {}))
    drawing = chosen(ENGINES, config.engine, "engine", options.get("engine", {}))
    barrier, engines = BatchBarrier(), list[Engine]()

    def policy(name: str, label: str) -> Agent:
        language = run.language(name)
        engines.append(_engine(language, drawing, config.agent.max_context, barrier))
        return Agent(config.agent, language.template, engines[-1], sampling, _named(label, language))

    playing = _playing(run, policy, engines, barrier)
    seen, identity, most = frozenset(state["seen"]), EnvIdentity.of(state), config.rollout.max_turns
    if (env := config.env) is None:
        homes = config.environments
        return Candidate(playing, None, None, (), identity, seen, most, engines, homes, code)
    return Candidate(playing, env.id, env.args, env.wrappers, identity, seen, most, engines, foreign_code=code)


def _option_of(role: str, entry: RoleConfig) -> str:
    """The option that gives a role a policy, with all that was set of it."""
    plain = entry.model_dump(mode="json")
    return shlex.join([f"--roles.{role}", plain if isinstance(plain, str) else as_toml(plain)])


def _with_partners(run: "SavedRun", given: Any) -> "SavedRun":
    """A run with other policies in some of its roles, which are played by what these words name now.

    Raises:
        OverrideError: there is no such role or policy.
    """
    from manyturn.trainers.recipe.config import parts_as_tables

    config = run.config
    try:
        entries = parts_as_tables({"roles": given})["roles"]
        others = {role: RoleConfig.model_validate(entry) for role, entry in entries.items()}
    except (ValidationError, AttributeError) as error:
        why = one_line(error, "roles") if isinstance(error, ValidationError) else "a table of policies by role"
        raise OverrideError(f"--roles: {why}") from None
    for role, entry in others.items():
        if role not in config.roles:
            raise OverrideError(unknown("role", role, config.roles))
        if entry.kind is RoleKind.TRAINED and entry.policy not in config.trained_roles:
            raise OverrideError(unknown("policy of the run", entry.policy, config.trained_roles))
    pinned = {role: partner for role, partner in run.state.get("partners", {}).items() if role not in others}
    roles = {**config.roles, **others}
    return replace(run, config=config.model_copy(update={"roles": roles}), state={**run.state, "partners": pinned})


def _playing(
    run: "SavedRun", policy: Callable[[str, str], Agent], engines: list[Engine], barrier: BatchBarrier
) -> Policy:
    """The policy of a run, or all of them in the roles that they were trained in, with those that did not learn.

    Args:
        engines: takes the engines of the latter.

    Raises:
        ConfigError: one of the latter has changed since the run was saved.
    """
    from manyturn.trainers.record.checkpoint import ONE_POLICY
    from manyturn.trainers.run.setup.frozen_roles import FrozenRoles, partner_changes
    from manyturn.trainers.run.setup.past_selves import saved_past
    from manyturn.trainers.run.setup.policy_model import choose_device

    if not (roles := run.config.roles):
        return policy(ONE_POLICY, run.label)
    trained = {name: policy(name, f"{name} of {run.label}") for name in run.config.trained_roles}
    frozen = FrozenRoles(choose_device("auto"), barrier, pinned=run.state["partners"])
    frozen.add_all(run.config)
    for role, (was, now) in partner_changes(frozen.pinned, frozen.partners).items():
        raise ConfigError(
            f"{was} played {role} in {run.path}, and {now} is there now: restore it, or add "
            f"{_option_of(role, roles[role])} to play with this one"
        )
    saved_past(run, frozen)
    engines += frozen.engines
    return Cast({role: trained.get(entry.policy) or frozen.policies[role] for role, entry in roles.items()})


def _model(word: str, options: PolicyOptions) -> Candidate:
    config = changed(MODEL_AGENT, "agent", options.get("agent", {}))
    usual = Sampling(max_tokens=config.reply_format.reply_tokens(tools=False))
    sampling = changed(usual, "sampling", options.get("sampling", {}))
    config.check_text()
    if reason := config.refuse(None, None):
        raise ValueError(reason)
    from manyturn.trainers.run.setup.saved_policy import loaded, with_context

    drawing = chosen(ENGINES, _ENGINE, "engine", options.get("engine", {}))
    try:
        language = loaded(word)
    except ModelError as error:
        if Path(word).exists():
            raise
        if (near := near_folder(Path(word))) is None:
            raise ModelError(f"a model at an endpoint is named openai:{word}. As a model here: {error}") from error
        raise ModelError(f"there is no folder {word}: did you mean {near}? As a model: {error}") from error
    config = with_context(config, language, word, given="max_context" in options.get("agent", {}))
    engine = _engine(language, drawing, config.max_context, BatchBarrier())
    return Candidate(Agent(config, language.template, engine, sampling, _named(word, language)), engines=[engine])


def _named(name: str, language: "LanguageModel") -> str:
    """The name with its weights: an interrupted evaluation must not go on with others of the same name."""
    from manyturn.trainers.record.checkpoint import weights_hash

    return f"{name}, weights {weights_hash(language.model)[:16]}"


def _engine(language: "LanguageModel", config: EngineConfig, max_context: int, barrier: BatchBarrier) -> Engine:
    made_for = EngineContext(
        language.model, language.template.end_ids, learns=False, max_context=max_context, barrier=barrier
    )
    return build_engine(config, made_for)


def _is_path(word: str) -> bool:
    """True if a word was meant as a path although nothing is there: an id of the hub is OWNER/NAME."""
    first, slash, _ = word.partition("/")
    return (
        word.endswith(".gguf")
        or first in ("", ".", "..", "~")
        or word.count("/") > 1
        or bool(slash and Path(first).is_dir())
    )


def _no_folder(path: Path) -> str:
    near = near_folder(path)
    hint = f"did you mean {near}?" if near else "name a run's folder, a checkpoint, or a model's folder or id"
    return f"there is no {path}: {hint}"


def option_in(options: PolicyOptions, section: str) -> str:
    """Name of the first option of a section as the command line has it."""
    given = options[section]
    name = f"{section}.{next(iter(given))}" if isinstance(given, dict) and given else section
    return name.replace("_", "-")


def _refuse(options: PolicyOptions, sections: Sequence[str], why: str) -> None:
    for section in sections:
        if section in options:
            raise OverrideError(f"--{option_in(options, section)} has no effect: {why}; leave it out")
