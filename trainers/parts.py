"""The parts of a run, put together from its configuration: environment, model, engine, agent, learner."""

import copy
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import torch

from manyturn.agents.agent import Agent
from manyturn.agents.breaker import Breaker
from manyturn.agents.engine import Sampling
from manyturn.agents.gather import Patience
from manyturn.agents.model_config import TinyModel
from manyturn.agents.models import LanguageModel, build_tiny, load_pretrained
from manyturn.agents.transformers_engine import TransformersEngine
from manyturn.agents.vocabulary import texts_of
from manyturn.envs.host import Host
from manyturn.envs.seats import Seats, open_seats
from manyturn.envs.task import Task
from manyturn.trainers.config import ConfigError, RunConfig
from manyturn.trainers.environment_rules import check_environment
from manyturn.trainers.learner import Learner


@dataclass
class Parts:
    """What a run works with.

    Attributes:
        seats: where episodes run.
        train: the tasks that may be learnt from.
        language: model and tokenizer; the learner changes its weights in place.
        engine: draws replies with the learner's weights as of the last ``publish``.
        agent: the policy that is trained.
        breaker: stops the run when the environment breaks too often.
    """

    config: RunConfig
    seats: Seats
    train: Sequence[Task]
    language: LanguageModel
    engine: TransformersEngine
    agent: Agent
    learner: Learner
    breaker: Breaker

    @property
    def patience(self) -> Patience:
        return Patience(self.config.rollout.attempts, self.config.rollout.error_share)

    def publish(self) -> None:
        """Let the engine draw with the learner's present weights."""
        self.engine.load(self.language.model, self.learner.updates)

    def at_temperature(self, temperature: float) -> Agent:
        """The same policy, drawing at another temperature."""
        sampling = Sampling(temperature=temperature, max_tokens=self.config.sampling.max_tokens)
        return Agent(self.config.agent, self.language.template, self.engine, sampling, self.agent.name)


def choose_device(name: str) -> torch.device:
    """The device of a configuration's entry; auto takes a GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda', but torch sees no GPU: install torch for CUDA, or set device = 'cpu'")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


@asynccontextmanager
async def open_parts(config: RunConfig) -> AsyncIterator[Parts]:
    """Build everything; the environment's processes end with the context."""
    if config.sampling.temperature == 0:
        raise ConfigError("sampling.temperature = 0 draws every member of a group alike: nothing could be compared")
    if config.model.kind == "pretrained" and config.model.dtype == "bfloat16" and not config.learner.lora_rank:
        raise ConfigError("model.dtype = 'bfloat16' loses small updates: leave it at auto, or set learner.lora_rank")
    device = choose_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    env, rollout = config.env, config.rollout
    async with open_seats(
        env.id,
        env.args,
        env.wrappers,
        limit=rollout.concurrency,
        workers=env.workers,
        timeout=env.timeout,
        limits=env.limits,
    ) as seats:
        check_environment(config, seats)
        language = _language_model(config, device)
        if config.learner.lora_rank:
            _add_adapters(language, config)
        # On a GPU the learner keeps float32 weights; the engine draws with a bfloat16 copy. Elsewhere they are one.
        drawn = language.model
        if device.type == "cuda" and not config.learner.lora_rank:
            drawn = copy.deepcopy(language.model).to(torch.bfloat16)  # type: ignore[arg-type]
        engine = TransformersEngine(drawn, language.template.end_ids, patience=rollout.patience)
        agent = Agent(config.agent, language.template, engine, config.sampling, name=config.env.id)
        learner = Learner(
            language, config.learner, config.objective, config.sampling.temperature, config.value, config.progress
        )
        window = max(200, rollout.tasks * rollout.group)
        breaker = Breaker(rollout.error_share, window, least=window)
        yield Parts(config, seats, seats.tasks("train"), language, engine, agent, learner, breaker)


def _language_model(config: RunConfig, device: torch.device) -> LanguageModel:
    if isinstance(config.model, TinyModel):
        host = Host(config.env.id, config.env.args, config.env.wrappers)
        try:
            texts = list(texts_of(host, config.agent, config.model.sample_tasks, config.seed))
        finally:
            host.close()
        return build_tiny(config.model, texts, config.seed, config.agent.max_context, device)
    return load_pretrained(config.model, device, trainable=not config.learner.lora_rank)


def _add_adapters(language: LanguageModel, config: RunConfig) -> None:
    """Freeze the model and put trainable LoRA adapters on all its linear layers but the head."""
    from peft import LoraConfig, get_peft_model

    learner = config.learner
    settings = LoraConfig(r=learner.lora_rank, lora_alpha=learner.lora_alpha, target_modules="all-linear", bias="none")
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        language.model = get_peft_model(language.model, settings)  # type: ignore[assignment]
