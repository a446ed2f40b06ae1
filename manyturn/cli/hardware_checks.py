"""Hardware checks of ``manyturn doctor``: cores, memory, GPUs and disk, and access to the hub."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from manyturn.agents.engine.card.device_memory import cgroup, main_memory, size
from manyturn.cli.doctor_finding import Diagnosis
from manyturn.cli.model_fit import MODELS, fits

_LITTLE_DISK = 2e9  # bytes; a few checkpoints of a 135M model


def hardware() -> list[Diagnosis]:
    """Cores, memory, GPUs, and what fits."""
    memory, free = main_memory()
    diagnoses = [
        Diagnosis("ok", "cpu", f"{_cores()} cores"),
        Diagnosis("ok", "memory", f"{size(memory)}, {size(free)} free"),
    ]
    gpu, gpu_memory = _gpus()
    diagnoses += gpu
    on_gpu = gpu_memory is not None
    room = gpu_memory if gpu_memory is not None else memory
    return diagnoses + [fits(name, count, room, on_gpu, per_token) for name, count, per_token in MODELS]


def _cores() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = cgroup("cpu.max").partition(" ")
    return max(1, min(usable, int(quota) // int(period))) if quota.isdecimal() and period.isdecimal() else usable


def _gpus() -> tuple[list[Diagnosis], float | None]:
    """The GPUs that torch sees, and the memory of the first."""
    if find_spec("torch") is None:
        return [Diagnosis("note", "gpu", "unknown without torch: see extra train")], None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a line below reports an old driver
            import torch

            if torch.cuda.is_available():
                cards = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
                lines = [f"cuda:{i} {card.name}, {size(card.total_memory)}" for i, card in enumerate(cards)]
                used = ["device = 'auto' takes it", *["not used: one process learns on one device"] * (len(cards) - 1)]
                diagnoses = [Diagnosis("ok", "gpu", f"{line}; {use}") for line, use in zip(lines, used, strict=True)]
                return diagnoses, float(cards[0].total_memory)
    except (ImportError, OSError, RuntimeError) as error:
        return [Diagnosis("note", "gpu", f"torch fails to say, install it again: {' '.join(str(error).split())}")], None
    if Path("/dev/nvidia0").exists():
        built = torch.version.cuda
        fix = "a newer driver is needed" if built else "install torch's CUDA build in its place"
        return [Diagnosis("note", "gpu", f"there is one, but torch {torch.__version__} sees none: {fix}")], None
    return [Diagnosis("ok", "gpu", "none; models learn on the CPU")], None


def folders(folder: Path) -> Iterable[Diagnosis]:
    """Space and permission to write where runs are kept."""
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_DISK:
        yield Diagnosis(
            "note", "disk", f"{size(free)} free in {folder.resolve()}: make room, or keep runs elsewhere: --out"
        )
    else:
        yield Diagnosis("ok", "disk", f"{size(free)} free in {folder.resolve()}")
    runs = folder / "runs"
    made = not runs.exists()
    try:
        runs.mkdir(exist_ok=True)
        try:
            with tempfile.NamedTemporaryFile(dir=runs) as file:
                file.write(b"manyturn")
                file.flush()
                os.fsync(file.fileno())
        finally:
            if made:
                runs.rmdir()
    except OSError as error:
        yield Diagnosis(
            "note", "runs", f"{runs}/ cannot be written ({error.strerror}): give runs another folder with --out"
        )
    else:
        yield Diagnosis("ok", "runs", f"{runs}/ can be written")


def hub() -> Diagnosis:
    """Diagnosis of the hub: models may be downloaded, or not."""
    # huggingface_hub reads both variables, in this way
    wish = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    if wish.upper() in ("1", "ON", "YES", "TRUE"):
        return Diagnosis(
            "ok", "hub", "HF_HUB_OFFLINE is set: nothing is downloaded, models come from folders or the cache"
        )
    return Diagnosis("ok", "hub", "HF_HUB_OFFLINE is not set: a model named by an id is downloaded if it is not cached")
