"""Trajectories that the warm-up imitates in place of demonstrations: what somebody has played, whoever that was.

Nothing is played again. Each turn is written as the policy would have had it: what it reads by its own template and
context, and the recorded reply. A reply from which the policy's reply format reads the action stays as it is, its
reasoning included; any other is written anew from its action. A turn that was invalid is read and not learnt.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from manyturn.agents.evaluation.paired_comparison import CompareError, read_evaluation
from manyturn.agents.play.agent import Agent
from manyturn.agents.play.demonstrations.demonstrator import Transcript
from manyturn.agents.play.demonstrations.scripted_policy import Mistake
from manyturn.agents.play.episode import Act, Ending, Episode, TurnRecord
from manyturn.agents.records.tables import RecordsError, Row, table_in
from manyturn.agents.text.reply_format import ReplyFormat
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.agents.trajectories.reader import IMPORTED, of_tables
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.task_check import panels_of


class Written(NamedTuple):
    """The trajectories that are imitated.

    Attributes:
        episodes: with the ledgers that the policies would have had.
        contents: of their tasks.
    """

    episodes: list[Episode]
    contents: set[str]


def written(run: Run, note: Callable[[str], None], wider: int) -> Written:
    """The trajectories of ``warmup.trajectories``, most ``warmup.episodes`` of them.

    Args:
        note: is told how many are left out, and why.
        wider: times agent.max_context: how long they may be, so that what does not fit can be measured.

    Raises:
        ConfigError: there are none to imitate, or they are of held-out tasks.
    """
    path = Path(str(run.config.warmup.trajectories))
    trajectories = read_trajectories(path, "warmup.trajectories")
    good = [trajectory for trajectory in trajectories if finished(trajectory)]
    if not good:
        raise ConfigError(
            f"none of the {len(trajectories)} trajectories in {path} reached its goal: name others as "
            "warmup.trajectories, or leave it out"
        )
    if len(good) < len(trajectories):
        failed = len(trajectories) - len(good)
        note(f"{failed} of {len(trajectories)} trajectories are not imitated: they did not reach their goal")
    _refuse_held_out(run, path, good)
    count = min(int(run.config.warmup.episodes), len(good))  # trajectories are not streamed
    numbers = generator("demonstrations", run.config.seed).choice(len(good), size=count, replace=False)
    chosen = [good[int(number)] for number in numbers]
    agents = {role: t.reading(wider * run.config.agent.max_context) for t in run.trainees for role in t.taught}
    episodes = [_episode(run, trajectory, agents, number) for number, trajectory in enumerate(chosen)]
    return Written(episodes, {trajectory.episode["content"] for trajectory in chosen})


def read_trajectories(path: Path, place: str) -> list[Trajectory]:
    """The trajectories of a file or a folder. Raises ConfigError with the option that names it."""
    try:
        if (path / "config.toml").is_file():
            raise TrajectoryError(
                f"{path} is a run: manyturn trajectories export {path} --as atif --success --out FOLDER writes what it "
                "has played"
            )
        if (path / "summary.json").is_file() and not (path / IMPORTED).is_file():
            folder = read_evaluation(path).folder
            return of_tables(table_in(folder, "episodes"), table_in(folder, "turns"), None, {})
        return read_any(path)
    except (TrajectoryError, CompareError, RecordsError) as error:
        raise ConfigError(f"{place}: {error}") from error


def finished(trajectory: Trajectory) -> bool:
    """True if it is an example: it was played to its end, and is not known to have failed."""
    ending = Ending(trajectory.episode["ending"])
    ended = not ending.is_error and ending is not Ending.TAMPERED
    return ended and trajectory.episode["success"] is not False and bool(trajectory.turns)


def _refuse_held_out(run: Run, path: Path, good: Sequence[Trajectory]) -> None:
    [(_, panel)] = panels_of(run.config, run.seats).values()
    checked = run.seats.tasks("validation")
    validation = [checked[i] for i in range(min(run.config.warmup.check_episodes, len(checked)))]
    held_out = dict(zip(panel.contents, panel.tasks, strict=True)) | {task.content: task.id for task in validation}
    if held := [
        held_out[trajectory.episode["content"]] for trajectory in good if trajectory.episode["content"] in held_out
    ]:
        raise ConfigError(
            f"{len(held)} of the {len(good)} trajectories in {path} are of tasks that this run is measured on, first "
            f"{held[0]!r}: imitate those of training tasks, such as of manyturn evaluate POLICY --split train"
        )


def _episode(run: Run, trajectory: Trajectory, agents: Mapping[str, Agent], number: int) -> Episode:
    """A trajectory as an episode of the policies that are trained; turns of other roles are left out."""
    ledger, task = Ledger(), trajectory.episode["task"]
    players = {role: Transcript(agent, run.seats.facts.instructions, ledger) for role, agent in agents.items()}
    key = EpisodeKey(run.config.seed, "trajectory", task, number)
    episode = Episode(key, Task(task, "train"), ending=Ending.COMPLETED, success=True, ledger=ledger)
    for row in trajectory.turns:
        if row["role"] not in run.roles:
            raise ConfigError(
                f"warmup.trajectories: a turn of {task!r} is of the role {row['role']!r}, and the environment has "
                f"{', '.join(run.roles)}: name trajectories of this environment"
            )
        if row["role"] in players:
            recorded = recorded_act(row, agents[row["role"]].format)
            act = players[row["role"]].take_down(Answer(row["observation"], role=row["role"]), recorded)
            episode.turns.append(_turn(row, act))
    return episode


def recorded_act(row: Row, reply_format: ReplyFormat) -> Act:
    """The recorded reply, with the action that it means in the policy's format."""
    reply, action = row["reply"], row["action"]
    if not (row["format_valid"] and row["understood"]):
        return Mistake(reply, action, format_valid=False)
    parsed = reply_format.read(reply)
    if parsed.format_valid and action in (parsed.action, reply):
        return Act(reply, parsed.action)
    return Act(action, action)


def _turn(row: Row, act: Act) -> TurnRecord:
    return TurnRecord(
        observation=row["observation"],
        reply=act.reply,
        action=act.action,
        format_valid=act.format_valid,
        understood=row["understood"],
        reward=row["reward"],
        parts=row["reward_parts"],
        anchor=row["anchor"],
        progress=row["progress"],
        seconds=(0.0, 0.0),
        role=row["role"],
        usage=act.usage,
    )
