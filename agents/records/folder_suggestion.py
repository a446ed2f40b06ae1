"""The folder that is meant where the name of a run or of an evaluation leads to none."""

from pathlib import Path

from manyturn.envs.contract.near_names import near_names


def near_folder(path: Path) -> Path | None:
    """A folder of that name below ``runs/``, or else one next to it of almost that name; None if there is neither."""
    if (usual := Path("runs") / path).is_dir():
        return usual
    if not path.parent.is_dir():
        return None
    near = near_names(path.name, [entry.name for entry in path.parent.iterdir() if entry.is_dir()], n=1)
    return path.parent / near[0] if near else None
