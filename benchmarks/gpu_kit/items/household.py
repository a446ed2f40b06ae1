"""A slice of a step of GiGPO on Household, and what a full step would take, in its authors' setting.

The setting is the recipe household-gigpo-qwen2.5-1.5b: 128 episodes of up to 50 turns, a model of 1.5B. Weights are
random in the model's shape, so nothing that is said means anything to the environment, and every episode has all its
turns: the longest step there can be. Replies end at random after 100 tokens in the mean, and at 512 at the latest.

Played are the first 3 turns of all episodes, and then the first 6 again from the beginning; before that a turn that is
not timed, in which kernels are chosen. From the third turn on a prompt has the last two turns, so the later three turns
are like those that follow:

    drawing of a step = seconds(6 turns) + (50 - 6) * (seconds(6 turns) - seconds(3 turns)) / 3

The 6 turns are then learnt from, as a run does it: policy and reference read all rows, and each minibatch is an update.
What that takes grows with the distinct tokens, of which the rows that are carried along say how many 50 turns have:

    learning of a step = seconds(6 turns) * distinct tokens(50 turns) / distinct tokens(6 turns)

The latter is for whole groups, 8 minibatches of which are a step. Both are stated as an extrapolation, not measured.
For comparison: 288 s on two H100 is what verl-agent's authors name for ALFWorld with Qwen2.5-1.5B (150 steps in 12
hours; langfengQ/verl-agent, issue 122), with a trained model that ends many episodes early.
"""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.gpu_kit.carried import household_rows
from benchmarks.gpu_kit.carried.household_rows import household
from benchmarks.gpu_kit.cases import Case, Kit
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.measurement_log import Figures
from manyturn.agents.play.episode import Episode
from manyturn.trainers.learn.passes.samples import Sample, samples_of
from manyturn.trainers.learn.passes.trie.tree import Tree
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run_builder import Run, open_run
from manyturn.trainers.run.step.policy_update import policy_updates
from manyturn.trainers.run.step.rollout_collection import play_groups


@dataclass
class Slice:
    """The part of a step that is measured, and what is known of it.

    Attributes:
        turns: of the shorter and the longer stretch, and of a full step.
        rows: of a minibatch of full episodes.
        drawing, learning, nodes: seconds by turns; seconds; distinct tokens of what was learnt from.
    """

    device: Device
    config: RunConfig
    folder: Path
    turns: tuple[int, int, int]
    rows: list[Sample]
    drawing: dict[int, float] = field(default_factory=dict)
    learning: float = 0.0
    nodes: int = 0

    @property
    def minibatch(self) -> int:
        """Episodes that the rows are of."""
        return max(row.episode for row in self.rows) + 1


def cases(kit: Kit) -> list[Case]:
    turns, rows = (1, 2, 3) if kit.toy else (3, 6, 50), household_rows.load(kit.carried, kit.toy)
    part = Slice(kit.device, household(kit.device.torch.type, kit.toy), kit.work / "household", turns, rows)
    return [
        Case(f"{turns[1]} turns played", partial(played, part)),
        Case("they are learnt from", partial(learnt, part)),
        Case("a step, extrapolated", partial(extrapolated, part)),
    ]


def played(part: Slice) -> Figures:
    """Play the beginning of all episodes; they stay in the folder to be learnt from."""
    return asyncio.run(_play(part))


async def _play(part: Slice) -> Figures:
    short, longer, _ = part.turns
    async with open_run(part.config) as run:
        await run.only.publish()
        part.device.forget_peak()
        for turns in (1, short, longer):
            shutil.rmtree(part.folder, ignore_errors=True)
            run.config = _ended_after(run.config, turns)
            with RunFolder(part.folder, resume=False) as folder:
                folder.write_config(run.config)
                with part.device.timed() as took:
                    async with run.drawing():
                        episodes = await _episodes(run, folder)
            part.drawing[turns] = took[0]
            print(f"{turns} turns: {took[0]:.2f} s", flush=True)
        peak, engine = part.device.peak(), run.only.engine.figures()
    tokens = sum(int(np.sum(branch.reply_mask)) for episode in episodes for branch in episode.ledger.branches)
    return {
        **{f"seconds_of_{turns}_turns": part.drawing[turns] for turns in (short, longer)},
        "episodes": len(episodes),
        "turns": sum(len(episode.turns) for episode in episodes),
        "drawn_tokens": tokens,
        "drawn_tokens_per_s": tokens / part.drawing[longer],
        "peak_gb": peak / 1e9,
        **engine,
    }


def _ended_after(config: RunConfig, turns: int) -> RunConfig:
    return config.model_copy(update={"rollout": config.rollout.model_copy(update={"max_turns": turns})})


async def _episodes(run: Run, folder: RunFolder) -> Sequence[Episode]:
    rollout = run.config.rollout
    tasks = list(run.train[: rollout.tasks])
    return await play_groups(run, plan_groups(tasks, rollout.group, run.config.seed, "train/1"), folder, 1)


def learnt(part: Slice) -> Figures:
    """Learn from the episodes that were played. Raises FileNotFoundError if there are none."""
    if not part.folder.is_dir():
        raise FileNotFoundError(f"{part.folder} has no episodes: the case before has to play them")
    return asyncio.run(_learn(part))


async def _learn(part: Slice) -> Figures:
    async with open_run(part.config) as run:
        run.config = _ended_after(run.config, part.turns[1])
        with RunFolder(part.folder, resume=True) as folder:
            episodes = await _episodes(run, folder)  # from its journal
        trainee = run.only
        trainee.learner.begin_reinforcement()
        await trainee.handover.to_learner()
        part.device.forget_peak()
        with part.device.timed() as took:
            [update] = policy_updates(run, episodes, [True] * len(episodes), {})
            figures, tokens = update.learn(run, 1)
        peak = part.device.peak()
        with part.device.timed() as handed_over:
            await trainee.publish()
    part.learning, part.nodes = took[0], _nodes(samples_of(episodes), part.minibatch)
    return {
        "seconds": took[0],
        "trained_tokens": tokens,
        "distinct_tokens": part.nodes,
        "updates": trainee.learner.updates,
        "peak_gb": peak / 1e9,
        "hand_over_seconds": handed_over[0],
        **{name: figures[name] for name in ("engine_kl", "engine_ratio_p99", "grad_norm")},
    }


def extrapolated(part: Slice) -> Figures:
    """A full step, from what was measured; see the module's text. Raises RuntimeError if something was not."""
    short, longer, full = part.turns
    if not part.learning or not {short, longer} <= part.drawing.keys():
        raise RuntimeError("the cases before have to be measured in this process")
    of_a_turn = (part.drawing[longer] - part.drawing[short]) / (longer - short)
    drawing = part.drawing[longer] + (full - longer) * of_a_turn
    rollout = part.config.rollout
    nodes = _nodes(part.rows, part.minibatch) * rollout.tasks * rollout.group / part.minibatch
    learning = part.learning * nodes / part.nodes
    return {
        "seconds_of_drawing": drawing,
        "seconds_of_learning": learning,
        "seconds_of_a_step": drawing + learning,
        "seconds_of_a_turn": of_a_turn,
        "distinct_tokens_of_a_step": nodes,
        "is_extrapolated": True,
    }


def _nodes(rows: Sequence[Sample], minibatch: int) -> int:
    """Distinct tokens, minibatch by minibatch of so many episodes."""
    parts: dict[int, list[np.ndarray]] = {}
    for row in rows:
        parts.setdefault(row.episode // minibatch, []).append(row.ids)
    return sum(len(Tree.of(ids, least=1).ids) for ids in parts.values())
