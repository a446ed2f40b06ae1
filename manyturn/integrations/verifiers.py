"""verifiers: an exported environment as a taskset, an environment and a harness, run by verifiers 0.4.0.

The episode is played in worker processes of ours, as for an evaluation. What the model replies, without the white space
around it, is the action. Each part of the reward is summed up over the turns; the turns themselves are in
``trace.info["manyturn"]``. ``trace.info["credit"]`` has what credit needs, in the form of
``manyturn.integrations.prime_rl``.

An episode that the environment or its process lost raises, so that verifiers retries it or counts an error. A reward
that is not known does the same: it is never 0.

Source: the package verifiers 0.4.0, ``verifiers.v1``.
"""

import math
import ssl
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from openai import APIError, AsyncOpenAI, DefaultAsyncHttpxClient  # pyright: ignore[reportMissingImports]
from verifiers.v1.dialects.chat import message_to_wire  # pyright: ignore[reportMissingImports]
from verifiers.v1.runtimes import SubprocessConfig  # pyright: ignore[reportMissingImports]

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import USUAL_TIMEOUT, Seats, open_seats
from manyturn.export.exported_env import Exported, episode_seed
from manyturn.integrations.rollout_fields import rollout_fields

_AT_ONCE = 1024  # episodes of one process of verifiers, which bounds them itself


class EpisodeData(vf.TaskData):
    """A task of ours: its split, its hash, and the seed of its episodes."""

    split: str
    content: str
    seed: int


class EpisodeTask(vf.Task[EpisodeData, vf.State, vf.TaskConfig]):
    """Scored by its environment while it is played, so it has no reward functions."""

    @property
    def key(self) -> str:
        return self.data.content


class PanelTasksetConfig(vf.TasksetConfig):
    """Options of the tasks: ``--env.taskset.split test``."""

    split: str = "train"


class PanelTaskset(vf.Taskset[EpisodeTask, PanelTasksetConfig]):
    """The tasks of an export; a subclass says where it lies.

    Attributes:
        folder: that of the export.
    """

    folder: ClassVar[Path]

    @cached_property
    def world(self) -> Exported:
        return Exported.read(self.folder)

    @cached_property
    def tasks_by_id(self) -> dict[str, Task]:
        """Id -> task, of the split."""
        return {task.id: task for task in self.world.tasks(self.config.split)}

    def load(self) -> Iterator[EpisodeTask]:
        for task in self.tasks_by_id.values():
            about = {"id": task.id, "name": task.id, "system_prompt": self.world.instructions or None}
            data = EpisodeData(**about, split=task.split, content=task.content, seed=episode_seed(task))
            yield EpisodeTask(data, self.config.task)


class EpisodeEnvConfig(vf.EnvConfig):
    """Options of playing: ``--env.workers 4``."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())  # it only talks, so it needs no sandbox
    workers: int = 2
    answer_seconds: float = USUAL_TIMEOUT


class PlayedTurn(NamedTuple):
    """A turn: the situation, the reply, and what came of it."""

    before: Answer
    action: str
    after: Answer


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):
    """One episode for each task, the environment being the user."""

    _seats: Seats | None = None

    async def start(self) -> None:
        world, config = self.taskset.world, self.config
        self._seats = open_seats(
            world.name, world.args, world.wrappers, _AT_ONCE, config.workers, config.answer_seconds
        )

    async def stop(self) -> None:
        if self._seats is not None:
            await self._seats.close()

    async def run(self, task: EpisodeTask, agents: Any) -> None:
        """Play to the end, or until verifiers ends it."""
        assert self._seats is not None
        task_row = self.taskset.tasks_by_id.get(task.data.id)
        if task_row is None or task_row.content != task.data.content:
            raise ValueError(f"task {task.data.id} is none of the split {self.taskset.config.split} of this export")
        turns = list[PlayedTurn]()
        async with self._seats.take() as seat:
            step = await seat.reset(task_row, task.data.seed)
            async with agents.player.interaction(task) as talk:
                while not step.ended:
                    segment = await talk.turn(step.observation)
                    if segment.terminated:
                        break
                    before, step = step, await seat.step(segment.last_reply)
                    turns.append(PlayedTurn(before, segment.last_reply, step))
        if not talk.trace.has_error:  # a model that failed has earned nothing, not even 0
            _judge(talk.trace, turns, step)


def _judge(trace: Any, turns: list[PlayedTurn], last: Answer) -> None:
    """Write what the episode earned into the trace. Raises EnvError if that is not known."""
    earned = {"outcome": 0.0}
    for number, turn in enumerate(turns, 1):
        if math.isnan(turn.after.reward):
            raise EnvError(f"what turn {number} is worth is not known, so the episode has no reward")
        for part, value in turn.after.parts.items():
            earned[part] = earned.get(part, 0.0) + value
    for part, value in earned.items():
        trace.record_reward(part, value)
    figures = {**last.measures, "turns": len(turns), "invalid": sum(not turn.after.understood for turn in turns)}
    figures |= {} if last.success is None and last.ended else {"success": float(bool(last.success))}
    figures |= {} if last.progress is None else {"progress": last.progress}
    for name, value in figures.items():
        trace.record_metric(name, float(value))
    plain = [_plain(turn) for turn in turns]
    trace.info["manyturn"] = {"turns": plain, "ended": last.ended, "truncated": not last.terminated}
    if turns:
        trace.info["credit"] = rollout_fields([(turn.before, turn.after) for turn in turns]) | {
            "truncated": not last.terminated
        }


def _plain(turn: PlayedTurn) -> dict[str, Any]:
    after = turn.after
    return {
        "action": turn.action,
        "text": after.observation,
        "reward": after.reward,
        "parts": dict(after.parts),
        "understood": after.understood,
        "format_valid": after.format_valid,
        "anchor": turn.before.anchor,
    }


@cache
def _trust() -> ssl.SSLContext:
    """Certificates to trust, read once per process: reading takes longer than a short reply."""
    return ssl.create_default_context()


class TalkConfig(vf.HarnessConfig):
    """It has no options of its own."""


class TalkHarness(vf.Harness[TalkConfig]):
    """Asks the model for one reply to the conversation, without tools and without a process of its own."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, prompt = self.resolve_prompt(data)
        user = (
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [*map(message_to_wire, prompt or ())]
        )
        messages: list[Any] = [{"role": "system", "content": system}, *user] if system else user
        http = DefaultAsyncHttpxClient(verify=_trust())
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, http_client=http) as client:
            try:
                await client.chat.completions.create(model=ctx.model, messages=messages)
            except APIError as error:  # verifiers knows what the model's server said, and puts that in its place
                return vf.ProgramResult(1, "", str(error))
        return vf.ProgramResult(0, "", "")
