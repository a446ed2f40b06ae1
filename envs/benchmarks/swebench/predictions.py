"""Predictions in the form of SWE-bench's harness, from the episodes of an evaluation.

The last observation of an episode holds the patch, so what is recorded of an evaluation, with every interruption and
retry already sorted out, holds the predictions:

    python -m manyturn.envs.benchmarks.swebench.predictions EVALUATION predictions.jsonl MODEL
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.envs.benchmarks.swebench.rows import DataError
from manyturn.envs.contract.atomic_files import replace_text

PATCH_MARK = "\n\nThe patch:\n"
"""Stands before the patch in the last observation; the patch is all that follows the first of it."""
_ERRORS = frozenset({"env_error", "infra_error", "cancelled"})


class Written(NamedTuple):
    """Counts of a file of predictions.

    Attributes:
        patches: predictions with a patch.
        empty: predictions without one: nothing was submitted, or nothing changed.
        errors: instances left out, as an error ended their episode.
    """

    patches: int
    empty: int
    errors: int


def prediction(instance: str, model: str, last: str) -> dict[str, str]:
    """One prediction.

    Args:
        last: the final observation of an episode.

    >>> prediction("a__b-1", "me", "Submitted." + PATCH_MARK + "diff --git")["model_patch"]
    'diff --git'
    """
    return {"instance_id": instance, "model_name_or_path": model, "model_patch": last.partition(PATCH_MARK)[2]}


def write_predictions(evaluation: Path, out: Path, model: str, attempt: int = 0) -> Written:
    """Write a prediction for each instance of an evaluation. Raises DataError.

    Args:
        evaluation: folder that ``manyturn evaluate --out`` has written.
        out: a ``.jsonl`` file.
        model: name of the policy, as it shall stand in the harness's report.
        attempt: which of an instance's episodes, if there are several, from 0.
    """
    if out.suffix != ".jsonl":
        raise DataError(f"{out}: SWE-bench's harness reads predictions from a .jsonl: give it that ending")
    rows = [row for row in _episodes(evaluation) if row["member"] == attempt]
    if not rows:
        raise DataError(f"{evaluation} has no attempt {attempt}: evaluate with more --repeats, or give a lower one")
    sound = [row for row in rows if row["ending"] not in _ERRORS]
    made = [prediction(row["task"], model, row["last"]) for row in sound]
    replace_text(out, "".join(f"{json.dumps(row)}\n" for row in made))
    patches = sum(bool(row["model_patch"]) for row in made)
    return Written(patches, len(made) - patches, len(rows) - len(made))


def _episodes(evaluation: Path) -> Iterator[Mapping[str, Any]]:
    path = evaluation / "episodes.parquet"
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        yield from pq.read_table(path, columns=["task", "member", "ending", "last"]).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path} is no table of episodes ({str(error).splitlines()[0]:.100}): name an evaluation"
        ) from None


def main() -> None:
    """See the module's text."""
    if len(sys.argv) != 4:
        sys.exit("usage: python -m manyturn.envs.benchmarks.swebench.predictions EVALUATION OUT.jsonl MODEL")
    try:
        written = write_predictions(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    except DataError as error:
        sys.exit(str(error))
    print(f"{sys.argv[2]}: {written.patches} patches, {written.empty} empty, {written.errors} errors left out")


if __name__ == "__main__":
    main()
