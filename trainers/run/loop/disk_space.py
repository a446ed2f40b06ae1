"""Check that a run's checkpoints fit on the disk, before the first step."""

import shutil
from pathlib import Path

from manyturn.agents.engine.card.device_memory import size
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.heads.scalar_model import OwnBody
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.run.setup.run_builder import Run


def checkpoint_bytes(learner: Learner) -> int:
    """Bytes of a learner's checkpoint: weights, or its adapters only, AdamW's two moments, the reference; and
    critics of their own."""
    bodies = [head.fit.reader.model for head in learner.heads if isinstance(head.fit, OwnBody)]
    trained, own = (
        sum(weights.nbytes for model in (learner.model, *bodies) for weights in model.parameters() if counts(weights))
        for counts in (lambda weights: weights.requires_grad, lambda weights: True)
    )
    weights = [weights for weights in learner.model.parameters() if weights.requires_grad]
    reference = sum(each.nbytes for each in weights)
    masters = 0  # of weights in bfloat16, which are float32 as their moments are
    if learner.config.has_masters:
        masters = sum((12 - 2 * each.itemsize) * each.numel() for each in weights if each.itemsize < 4)
    saved = trained if learner.config.lora_rank else own
    return saved + 2 * trained + masters + learner.objective.keeps_reference * reference


def check_room(run: Run, folder: Path) -> None:
    """Refuse a run whose checkpoints will not fit next to each other; one is written before an older one goes.

    Args:
        folder: the run's; what it holds already is replaced in time.

    Raises:
        ConfigError: it says how many would fit.
    """
    each = sum(checkpoint_bytes(trainee.learner) for trainee in run.trainees)
    besides = 1 + run.config.warmup.imitates  # the one that is being written, and the end of the warm-up, which stays
    there = sum(path.stat().st_size for path in (folder / "checkpoints").rglob("*") if path.is_file())
    free = shutil.disk_usage(folder).free + there
    keep = run.config.keep_checkpoints
    if (keep + besides) * each <= free:
        return
    fits = free // each - besides
    fix = f"set keep_checkpoints to {fits}, or" if fits >= 1 else "make room, or"
    raise ConfigError(
        f"{keep + besides} checkpoints of {size(each)} do not fit into the {size(free)} that the disk of {folder} has: "
        f"{fix} name another --out"
    )
