"""Import and export of trajectories: runs and evaluations in foreign formats, and foreign ones as folders of ours."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from manyturn.agents.evaluation.paired_comparison import read_evaluation
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.records.tables import table_in
from manyturn.agents.trajectories.folder_writer import write_folder
from manyturn.agents.trajectories.format_detection import read_any, write_text_lines
from manyturn.agents.trajectories.formats import atif, chat, hub, inspect_logs, openenv_trace, preferences
from manyturn.agents.trajectories.reader import IMPORTED, about_evaluation, of_tables, read_lines
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError
from manyturn.envs.contract.tasks.env_identity import KEY
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.terminal.event_loop import result_of

if TYPE_CHECKING:
    from manyturn.trainers.recipe.config import EnvConfig, RunConfig

Writer = Callable[[Path, Iterable[Trajectory]], int]
Note = Callable[[str], object]


class Format(NamedTuple):
    """A format to export to.

    Attributes:
        write: writes a file or folder and says how many records it has.
        record: what one of them is.
        lost: what it has no place for; empty if it holds everything.
    """

    write: Writer
    record: str
    lost: str = ""


FORMATS: Mapping[str, Format] = {
    "atif": Format(atif.write, "trajectories"),
    "chat": Format(lambda out, items: write_text_lines(out, chat.lines_of(items)), "conversations", chat.LOST),
    "preferences": Format(
        lambda out, items: write_text_lines(out, preferences.lines_of(items)), "pairs", preferences.LOST
    ),
    "datasets": Format(hub.write, "trajectories"),
    "inspect": Format(inspect_logs.write, "samples"),
    "openenv": Format(
        lambda out, items: write_text_lines(out, openenv_trace.lines_of(items)), "traces", openenv_trace.LOST
    ),
}


def export(
    path: Path, form: str, out: Path, *, success: bool = False, limit: int | None = None, note: Note = print
) -> int:
    """Write the trajectories of a run, of an evaluation or of an imported folder in a format of others.

    Args:
        path: the folder.
        form: a name of ``FORMATS``.
        out: the file or folder to write.
        success: leave out whatever did not reach its goal.
        limit: most episodes.
        note: takes what there is to say.

    Returns:
        How many records were written.

    Raises:
        TrajectoryError: there is nothing to write, or the format cannot hold it.
    """
    trajectories = trajectories_of(path, note)
    if success:
        trajectories = (one for one in trajectories if one.episode["success"])
    chosen = islice(trajectories, limit)
    first = next(chosen, None)
    if first is None:
        raise TrajectoryError(f"{path} has no episodes{' that reached their goal' * success}: nothing was written")
    if first.ledger is None and form in ("atif", "datasets", "inspect") and first.episode["reply_tokens"]:
        note("no ids of tokens: they are kept of a run with keep_tokens = true")
    count = FORMATS[form].write(out, chain([first], chosen))
    lost = FORMATS[form].lost
    note(f"{count} {FORMATS[form].record}: {out}" + (f"; {form} has no place for {lost}" if lost else ""))
    return count


def import_files(files: Iterable[Path], out: Path, note: Note = print) -> dict[str, Any]:
    """Read trajectories in any format that is known, and write them to a folder; returns its summary."""
    names = list(files)
    trajectories = [one for file in names for one in read_any(file)]
    summary = write_folder(out, trajectories, names[0].stem if names else "nothing")
    note(f"{len(trajectories)} trajectories: {out}; manyturn report {out} shows every turn")
    return summary


def trajectories_of(path: Path, note: Note) -> Iterator[Trajectory]:
    """The trajectories of a folder, step by step."""
    if (path / IMPORTED).is_file():
        return read_lines(path / IMPORTED)
    if (path / "config.toml").is_file():
        return _of_run(path, note)
    evaluated = read_evaluation(path)
    summary = evaluated.summary
    about = about_evaluation(
        summary, _instructions(summary["env"], summary["args"], summary["wrappers"], summary["agent"], note)
    )
    return iter(of_tables(table_in(evaluated.folder, "episodes"), table_in(evaluated.folder, "turns"), None, about))


def _of_run(run: Path, note: Note) -> Iterator[Trajectory]:
    from manyturn.trainers.record.env_changes import env_identity_at
    from manyturn.trainers.record.run_folder import newest_state, read_config, step_ledgers, step_tables

    config = read_config(run)
    abouts = {name: _about_env(run, config, env, note) for name, env in config.environments.items()}
    numbers = [file.stem.removeprefix("step_") for file in (run / "episodes").glob("step_*.parquet")]
    state = newest_state(run)
    for step in sorted(int(number) for number in numbers if number.isdecimal()):
        turns, episodes = step_tables(run, step)
        identity = env_identity_at(state, step)
        for one in of_tables(episodes, turns, step_ledgers(run, step), {}):
            name = next(env for env in abouts if not config.envs or one.episode["task"].startswith(f"{env}/"))
            own = identity if not config.envs or identity is None else identity["members"].get(name)
            yield replace(one, about={**abouts[name], KEY: own})


def _about_env(run: Path, config: "RunConfig", env: "EnvConfig", note: Note) -> dict[str, Any]:
    """Settings that a run's trajectories in one environment share."""
    agent = config.agent.model_dump(mode="json")
    instructions = _instructions(env.id, env.args, env.wrappers, agent, note)
    return {
        "env": env.id,
        "args": dict(env.args),
        "wrappers": [wrapper.model_dump(mode="json") for wrapper in env.wrappers],
        "user": None,
        "policy": f"{run.resolve().name}, training",
        "agent": agent,
        "sampling": config.sampling.model_dump(mode="json"),
        "seed": config.seed,
        "max_turns": config.rollout.max_turns,
        "system": config.agent.system_text(instructions) or None,
    }


def _instructions(env: str, args: Any, wrappers: Any, agent: Any, note: Note) -> str:
    """The environment's instructions, which no table holds."""
    if agent is not None and AgentConfig.model_validate(agent).show_admissible:
        note("agent.show_admissible: the lists of commands below the observations are kept nowhere, and left out")
    try:
        return result_of(_env_instructions(env, args, wrappers))
    except Exception as error:
        why = " ".join(str(error).split())
        note(f"the environment cannot be opened ({why:.200}): messages begin without its instructions")
        return ""


async def _env_instructions(env: str, args: Any, wrappers: Any) -> str:
    async with open_seats(env, args, wrappers, limit=1) as seats:
        return seats.facts.instructions
