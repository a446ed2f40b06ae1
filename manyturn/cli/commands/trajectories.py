"""Commands that write trajectories in the formats of others, and read them."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

trajectories_app = App(name="trajectories", help="Trajectories in the formats of others: docs/trajectories.md.")
Form = Literal["atif", "chat", "preferences", "datasets", "inspect", "openenv"]


@trajectories_app.command(name="export")
def export_trajectories(
    path: Path,
    *,
    as_: Annotated[Form, Parameter(name="--as")],
    out: Path,
    success: Annotated[bool, Parameter(negative="")] = False,
    limit: int | None = None,
) -> None:
    """Write what was played in a format of others.

    Parameters
    ----------
    path
        Folder of a run, whose training episodes are meant; of an evaluation, such as RUN/evaluation; or of an import.
    as_
        atif: a JSON file for each episode, with tokens, log-probabilities and rewards. chat: JSON lines of messages,
        for supervised fine-tuning. preferences: pairs of each group's best and worst episode. datasets: a folder for
        the Hugging Face Hub. inspect: a folder with a log for Inspect's viewer. openenv: JSON lines of
        TrainingTrace, with ids of tokens for trainers.
    out
        The file to write; of atif, datasets and inspect a folder.
    success
        Leave out episodes that did not reach their goal.
    limit
        Most episodes.
    """
    from manyturn.api.trajectory_formats import export

    export(path, as_, out, success=success, limit=limit)


@trajectories_app.command(name="import")
def import_trajectories(*files: Path, out: Path) -> None:
    """Read trajectories into a folder that report, compare and replay:FOLDER take.

    Parameters
    ----------
    files
        ATIF (.json, or a folder of them), chat lines (.jsonl), a log of Inspect (.json, or a folder of them), a
        folder that trajectories export --as datasets wrote, or lines that --as openenv wrote.
    out
        The folder.
    """
    from manyturn.api.trajectory_formats import import_files

    import_files(files, out)
