"""The parts of a run, put together from its configuration: the environment's seats and the policies that learn."""

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
import torch

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.card.device_handover import DeviceHandover
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.play.agent import Agent
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.demonstrations.teacher_prompts import Advised
from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.agents.play.episode import Episode
from manyturn.agents.play.error_limit import Breaker
from manyturn.agents.play.role_episodes import EpisodeRoles
from manyturn.agents.play.role_policy import Cast
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.contract.options.option_conflicts import refuse_unfit
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.mixed_tasks import MixedTasks, apportioned, numbers_by_env
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.contract.tasks.task_filter import chosen_tasks
from manyturn.envs.hosting.local.seats import Seats
from manyturn.trainers.learn.columns.teacher import advice_of
from manyturn.trainers.learn.learner.learner import Learner, Share
from manyturn.trainers.learn.learner.learner_config import OFFLOADS_NOTHING
from manyturn.trainers.learn.learner.memory_estimate import check_fits
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.rendezvous import Meeting
from manyturn.trainers.play.guidance.guidance import Workshop
from manyturn.trainers.play.judges.judging import Judging
from manyturn.trainers.play.rollout.rollout_batch import describe
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.role_config import RoleKind
from manyturn.trainers.record.checkpoint import ONE_POLICY, read_tensors
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.resource_use import keep_freed_memory
from manyturn.trainers.run.setup.frozen_roles import FrozenRoles
from manyturn.trainers.run.setup.past_selves import PastSelf, past_selves
from manyturn.trainers.run.setup.placement import engine_of, processes_of, seats_of
from manyturn.trainers.run.setup.policy_model import choose_device, policy_model
from manyturn.trainers.run.setup.ranks.machine_processes import MachineProcesses
from manyturn.trainers.run.setup.ranks.rank_failure import RankWatch
from manyturn.trainers.run.setup.task_check import check_mixture, check_tasks, members_of, panels_of
from manyturn.trainers.run.setup.trainee import Trainee

T = TypeVar("T")
Played = TypeVar("Played", Agent, Demonstrator)

_OF_EACH = ("success", "return", "turns", "invalid", "cut", "truncated", "errors")  # metrics of each environment
_MORE_ERRORS = "rollout.error_share"  # the option that allows them
_VOCABULARY_SECONDS = 5.0  # between two lines that say how far it is


@dataclass
class Run:
    """The parts of a run.

    Attributes:
        seats: where episodes run.
        train: the tasks that may be learnt from.
        trainees: the policies that are trained.
        breaker: stops the run when the environment breaks too often.
        frozen: the policies of roles that do not learn.
        past: those among them that are the past of the policy that does.
        judging: the judge of what was played, where there is one.
        ranks: the source of the news that another rank has ended, where the run has started them or Ray has.
    """

    config: RunConfig
    seats: Seats
    train: Sequence[Task]
    trainees: tuple[Trainee, ...]
    breaker: Breaker
    frozen: FrozenRoles
    past: tuple[PastSelf, ...] = ()
    judging: Judging | None = None
    ranks: RankWatch | None = None
    _drawing: int = 0

    @property
    def only(self) -> Trainee:
        """The policy of a run that trains one. Raises ValueError if it trains several."""
        [trainee] = self.trainees
        return trainee

    @property
    def endpoints(self) -> list[OpenAIPolicy]:
        """The endpoints that a run asks while it trains."""
        judge = None if self.judging is None else self.judging.endpoint
        return [*self.frozen.endpoints, *([] if judge is None else [judge])]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of an episode."""
        return self.seats.facts.roles

    @property
    def learning_roles(self) -> EpisodeRoles:
        """The roles of an episode, with those in which a policy of this run learns."""
        learning = {role for trainee in self.trainees for role in trainee.roles}
        return EpisodeRoles(self.roles, tuple(role for role in self.roles if role in learning))

    def shares(self, count: int, rng: np.random.Generator) -> list[tuple[Sequence[int], int]]:
        """The numbers of each environment's training tasks, and how many of ``count`` are its own, by weight.

        Args:
            rng: decides where shares are no whole numbers.
        """
        by_env, weights = numbers_by_env(self.train) if self.config.envs else {}, self.config.weights
        if not by_env:
            return [(range(len(self.train)), count)]
        return list(zip(by_env.values(), apportioned(count, [weights[str(env)] for env in by_env], rng), strict=True))

    def validation_tasks(self, count: int) -> list[Task]:
        """The first validation tasks; of several environments the first of each, as many as are its share by weight."""
        tasks, weights = self.seats.tasks("validation"), list(self.config.weights.values())
        if not isinstance(tasks, MixedTasks):
            return [tasks[place] for place in range(min(count, len(tasks)))]
        shares = apportioned(count, weights, generator("validation", self.config.seed))
        return [
            tasks[n] for numbers, share in zip(tasks.numbers().values(), shares, strict=True) for n in numbers[:share]
        ]

    @cached_property
    def measured_contents(self) -> frozenset[str]:
        """Contents of the tasks that figures of this run are of, held out or for validation."""
        config, contents = self.config, set[str]()
        for _, panel in panels_of(config, self.seats).values():
            contents |= set(panel.contents)
        if "validation" in self.seats.facts.splits:
            count = max(config.warmup.check_episodes, config.evaluation.every_limit)
            contents |= {task.content for task in self.validation_tasks(count)}
        return frozenset(contents)

    def describe(self, episodes: Sequence[Episode]) -> dict[str, Any]:
        """The metrics of what was played, and those of each environment where there are several."""
        metrics = describe(episodes, self.roles, self.seats.facts.part_names)
        for env in self.config.weights:
            own = describe([episode for episode in episodes if episode.task.env == env])
            metrics |= {f"{env}/{name}": own[name] for name in _OF_EACH}
        return metrics

    @property
    def patience(self) -> Patience:
        return Patience(self.config.rollout.attempts, self.config.rollout.error_share, _MORE_ERRORS)

    @property
    def versions(self) -> list[int]:
        """Updates that each policy has had."""
        return [trainee.learner.updates for trainee in self.trainees]

    @asynccontextmanager
    async def drawing(self) -> AsyncIterator[None]:
        """While episodes are played: the engines are awake, and draw with their learners' present weights.

        After it they sleep, since learner and engine may share a device; within another such stretch they stay awake.
        Nothing else waits for engines, so that a run which is stopped is never stopped between an update and what
        belongs to it.
        """
        for trainee in self.trainees:
            await trainee.publish()
        for past in self.past:
            await past.publish(self.only.learner.updates)
        for engine in self.frozen.engines:
            await engine.wake()
        self._drawing += 1
        try:
            yield
        finally:
            self._drawing -= 1
        if not self._drawing:
            for engine in self.frozen.engines:
                await engine.sleep()
            for trainee in self.trainees:
                await trainee.handover.to_learner()

    def note_step(self, done: int) -> None:
        """So many steps are done, or the warm-up, for 0."""
        for past in self.past:
            past.note(done)

    def recall(self, checkpoint: Path) -> None:
        """Take past selves over from a checkpoint."""
        for past in self.past:
            past.load(read_tensors(checkpoint, self.only.name))

    def batch_limits(self) -> dict[str, int]:
        """Most replies that the engine of each policy computes together, where engines say so."""
        limits = {trainee.name: trainee.engine.batch_limit for trainee in self.trainees}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def restrict(self, limits: Mapping[str, int]) -> None:
        """Compute no more replies together than memory allowed before, so that the same batches give the same bits."""
        for trainee in self.trainees:
            engine = trainee.engine
            if trainee.name in limits and engine.batch_limit is not None:
                engine.batch_limit = min(engine.batch_limit, limits[trainee.name])

    def engine_figures(self) -> dict[str, float]:
        """Metrics of the engines since the last step."""
        by_policy = [trainee.labelled(trainee.engine.figures()) for trainee in self.trainees]
        return {name: value for figures in by_policy for name, value in figures.items()}

    def policy(self, temperature: float | None = None) -> Agent | Cast:
        """The policy that plays: those that are trained, each in its own roles.

        Args:
            temperature: to draw at instead of that which is trained with.
        """
        return self._cast(lambda trainee: trainee.agent if temperature is None else trainee.at_temperature(temperature))

    def advised(self) -> Agent | Cast | Advised:
        """The policy that plays training episodes; what a teacher would have read is kept where credit asks for it."""
        advice = advice_of(self.config)
        return self.policy() if advice is None else Advised(self.only.agent, advice)

    def demonstrator(
        self, teacher: Scripted, max_context: int | None = None, policy_share: float = 0.0
    ) -> Demonstrator | Cast:
        """The teacher in the roles that are trained, recorded as if the policies had said it.

        Args:
            max_context: of a policy that could read more than those that are trained.
            policy_share: share of turns at which the policies themselves reply.
        """
        labels = self.config.warmup.labels == "expert"

        def demonstrator(t: Trainee) -> Demonstrator:
            agent = t.agent if max_context is None else t.reading(max_context)
            return Demonstrator(agent, teacher, labels=labels, policy_share=policy_share)

        # Until the first step the past is the policy itself, which is to know these roles too.
        return self._cast(demonstrator, {role for trainee in self.trainees for role in trainee.taught})

    def _cast(self, play: Callable[[Trainee], Played], taught: Collection[str] = ()) -> Played | Cast:
        """Policies in training as ``play`` has them, in their roles and those of ``taught``, and the frozen ones."""
        trained = {trainee.name: play(trainee) for trainee in self.trainees}
        if not self.config.roles:
            return trained[ONE_POLICY]
        players = {
            role: trained[t.name] for t in self.trainees for role in t.taught if role in taught or role in t.roles
        }
        return Cast({role: players.get(role) or self.frozen.policies[role] for role in self.config.roles})

    def per_policy(self, of: Callable[[Trainee], T]) -> T | dict[str, T]:
        """One value, or one per policy name."""
        values = {trainee.name: of(trainee) for trainee in self.trainees}
        if ONE_POLICY in values:
            return values[ONE_POLICY]
        return values


@asynccontextmanager
async def open_run(
    config: RunConfig,
    log: Log = lambda line: None,
    ranks: Ranks | None = None,
    pinned: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> AsyncIterator[Run]:
    """Build everything; the environment's processes end with the context.

    Args:
        ranks: those that learn, where there are several.
        log: receives how far the model's vocabulary is, where that takes long.
        pinned: role -> partner that played it until the checkpoint, see ``FrozenRoles``.
    """
    device = choose_device(config.device)
    if config.learner.has_masters:
        _check_masters(config, device, config.placement.ranks if ranks is None else ranks.size)
    if device.type == "cpu":
        keep_freed_memory()
    rollout = config.rollout
    async with AsyncExitStack() as opened:
        opened.callback(torch.set_num_threads, torch.get_num_threads())
        if config.threads:
            torch.set_num_threads(config.threads)
        meeting = _meeting(config, device, ranks) if config.placement.ranks > 1 else None
        processes = processes_of(config, meeting, device)
        if processes is not None:
            await opened.enter_async_context(processes)
        seats = await opened.enter_async_context(seats_of(config, meeting))
        config = config.fitted(seats.facts, device.type)
        refuse_unfit(config, seats.facts)
        check_mixture(config, seats)
        check_tasks(config, seats)
        texts = await _vocabulary(config, seats, log)
        if config.model.preparation is not None:
            log({"phase": "notice", "notice": config.model.preparation})
        trainees, roles = list[Trainee](), config.trained_roles or {ONE_POLICY: seats.facts.roles}
        barrier = BatchBarrier()
        frozen = FrozenRoles(device, barrier, config.engine.capabilities.keeps_bits, pinned)
        frozen.add_all(config)
        shares: Sequence[Share | None] = [None] * len(roles)
        if meeting is not None:
            ranks = opened.enter_context(Ranks(meeting))
        if ranks is not None:
            from manyturn.trainers.run.setup.ranks.rank_startup import lead  # which brings FSDP, and takes a second

            shares = lead(ranks, config, texts, len(roles))
        parts = _TraineeParts(config, device, barrier, texts, ranks, seats, processes)
        for (name, played), share in zip(roles.items(), shares, strict=True):
            trainees.append(parts.build(name, played, share))
            opened.push_async_callback(trainees[-1].engine.shutdown)
            await trainees[-1].engine.ready()
        _share_threads(trainees)
        past = past_selves(config, trainees[0].agent, trainees[0].language, frozen)
        if past and ranks is not None:
            raise ConfigError("past:K in [roles] is of one process that learns: train without ranks, or leave it out")
        for engine in frozen.engines:
            opened.push_async_callback(engine.shutdown)
            await engine.ready()
        window = max(200, rollout.tasks * rollout.group)
        breaker = Breaker(rollout.error_share, window, window, _MORE_ERRORS)
        train = chosen_tasks(config.tasks, "train", seats.facts)
        run = Run(config, seats, train, tuple(trainees), breaker, frozen, past)
        if config.judge is not None:
            run.judging = Judging(config.judge, Workshop(seats, rollout.max_turns, run.patience))
        if meeting is not None:
            run.ranks = cast("RankWatch", processes or seats)
        yield run


def _share_threads(trainees: Sequence[Trainee]) -> None:
    """Have passes side by side use the threads that an operation has used."""
    threads = torch.get_num_threads()
    if all([trainee.learner.use_threads(threads) for trainee in trainees]):
        torch.set_num_threads(1)  # each pass has its own thread, and the engine's operations are as small


def _check_masters(config: RunConfig, device: torch.device, ranks: int) -> None:
    if config.learner.weights == "bfloat16" and ranks > 1:
        raise ConfigError(
            f"learner.weights = 'bfloat16' does not go together with {ranks} ranks, whose shards are float32: leave it "
            "out, or train with one rank"
        )
    if not config.learner.offload_optimizer:
        return
    if ranks > 1:
        raise ConfigError(
            f"learner.offload_optimizer does not go together with {ranks} ranks, which share AdamW's moments out "
            "instead: leave it out, or train with one rank"
        )
    if device.type == "cpu":  # which device = "auto" has led to
        raise ConfigError(OFFLOADS_NOTHING)


def _meeting(config: RunConfig, device: torch.device, ranks: Ranks | None) -> Meeting:
    """The meeting of ranks that the section starts. Raises ConfigError where they cannot learn with this process."""
    count, is_local = config.placement.ranks, config.placement.kind == "local"
    if ranks is not None:
        raise ConfigError(f"placement.learners = {count} has ranks started already: train without torchrun")
    if device.type != "cpu" and not is_local:
        raise ConfigError(
            f"placement.learners = {count}: ranks that Ray places learn on CPUs only; set device = 'cpu', or "
            "placement.kind = 'local' for ranks on the GPUs of this machine"
        )
    return Meeting.begun(count, all_here=not config.placement.remote, own_machine=is_local)


async def _vocabulary(config: RunConfig, seats: Seats, log: Log) -> list[str]:
    """The texts that the model's words are taken from; none for a model that has its own."""
    if not (tasks := config.model.vocabulary_tasks):
        return []
    shown = time.monotonic()

    def on_task(done: int, planned: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _VOCABULARY_SECONDS:
            shown = time.monotonic()
            log({"phase": "vocabulary", "tasks": done, "planned": planned})

    patience = Patience(config.rollout.attempts, config.rollout.error_share)
    texts = list[str]()
    for own in members_of(seats).values():
        texts += await texts_of(own, config.agent, tasks, config.seed, patience=patience, on_task=on_task)
    return texts


@dataclass(frozen=True)
class _TraineeParts:
    """The parts of a run that its policies are built from.

    Attributes:
        barrier: shared by the engines.
        texts: that a tiny model's vocabulary is made of.
    """

    config: RunConfig
    device: torch.device
    barrier: BatchBarrier
    texts: list[str]
    ranks: Ranks | None
    seats: Seats
    processes: MachineProcesses | None

    def build(self, name: str, roles: tuple[str, ...], share: Share | None) -> Trainee:
        config, ranks = self.config, self.ranks
        language, lora = policy_model(config, self.device, self.texts), bool(config.learner.lora_rank)
        heads = [head for head in (config.value, config.progress, config.implicit) if head is not None]
        context = EngineContext(
            language.model,
            language.template.end_ids,
            lora,
            rank_share=None if ranks is None else ranks.share_of(self.device),
            beside=config.learner.states_bytes if ranks is None else 0.0,
            reference=config.objective.keeps_reference,
            bodies=sum(getattr(head, "body", "own") == "own" for head in heads),
            moments=not config.learner.offload_optimizer,
            max_context=config.agent.max_context,
            barrier=self.barrier,
            own_weights=config.order.is_asynchronous,
        )
        engine = engine_of(config, context, self.seats, self.processes)
        shown = config.env_title if name == ONE_POLICY else name
        agent = Agent(config.agent, language.template, engine, config.sampling, name=shown)
        objective, temperature = config.objective.over(config.steps), config.sampling.temperature
        learner = Learner(language, config.learner, objective, temperature, heads, share)
        notice = None
        if share is None:
            notice = check_fits(learner, config.agent.max_context, config.learner.states_bytes + engine.asleep_bytes)
        past = [role for role, entry in config.roles.items() if entry.kind is RoleKind.PAST]
        handover = DeviceHandover(self.device, engine, learner.release_cached)
        return Trainee(name, roles, (*roles, *past), language, engine, agent, learner, handover, notice)
