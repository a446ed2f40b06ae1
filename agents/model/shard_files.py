"""A learner's tensors in files, one for each rank, which any number of ranks reads, one process too.

A folder has ``rank-N.safetensors`` with slices of tensors, and ``index.json``, which says where each slice belongs:

    {"TENSOR": {"shape": [rows, ...], "slices": [{"file": NAME, "start": ROW, "rows": COUNT}, ...]}}

Each rank writes its file in a thread of its own, from a copy in the host's memory, and then a mark that it is there.
Rank 0 waits for the marks: ranks need not wait for each other.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from manyturn.agents.model.model_internals import host_copy
from manyturn.envs.contract.atomic_files import replace_text, sync

INDEX = "index.json"
_LOOK_SECONDS, _AGAIN_SECONDS = 0.02, 1.0

Slices = dict[str, tuple[torch.Tensor, dict[str, Any]]]  # name -> the rows that this rank has, and where they belong


def own_slices(tensors: Mapping[str, torch.Tensor], rank: int, size: int) -> Slices:
    """Host copies of a rank's tensors: its rows of shards; in rank 0 also the tensors that every rank has in full."""
    slices: Slices = {}
    for name, tensor in tensors.items():
        shard: Any = tensor
        if hasattr(tensor, "device_mesh"):  # a DTensor
            assert len(shard.placements) == 1 and shard.placements[0].is_shard(0), "FSDP shares out rows"
            local = shard.to_local()
            start = min(rank * math.ceil(tensor.shape[0] / size), tensor.shape[0])
        elif rank == 0:
            local, start = tensor, 0
        else:
            continue
        rows = local.shape[0] if local.ndim else 1
        if rows:
            slices[name] = host_copy(local), {"shape": list(tensor.shape), "start": start, "rows": rows}
    return slices


def write_shard(folder: Path, slices: Slices, rank: int) -> None:
    """Begin to write what a rank has. Its mark says in the end where its slices belong, or why they are not there."""
    threading.Thread(target=_write, args=(folder, slices, rank), name="shard", daemon=True).start()


def _write(folder: Path, slices: Slices, rank: int) -> None:
    file = folder / f"rank-{rank}.safetensors"
    try:
        save_file({name: tensor for name, (tensor, _) in slices.items()}, file)
        sync(file)
        mark: dict[str, Any] = {"slices": {name: {**place, "file": file.name} for name, (_, place) in slices.items()}}
    except (OSError, SafetensorError) as error:
        mark = {"error": f"rank {rank}: {error}"}
    while folder.is_dir():  # until rank 0 has given it up
        try:
            replace_text(_mark(folder, rank), json.dumps(mark))
            return
        except OSError:
            file.unlink(missing_ok=True)  # a full disk has room for the mark then
            mark = mark if "error" in mark else {"error": f"rank {rank}: its file was there, and no room for its mark"}
            time.sleep(_AGAIN_SECONDS)


def _mark(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.json"


@dataclass(frozen=True)
class WrittenShards:
    """Files that ranks are writing into a folder.

    Attributes:
        size: how many ranks.
    """

    folder: Path
    size: int

    def complete(self, heed: Callable[[], None]) -> None:
        """Wait for all of them, and write the index. Raises OSError where a rank could not write its file.

        Args:
            heed: called while it waits; by an error it ends the wait.
        """
        index = dict[str, Any]()
        for rank in range(self.size):
            mark = _mark(self.folder, rank)
            while not mark.is_file():
                heed()
                time.sleep(_LOOK_SECONDS)
            written = json.loads(mark.read_text())
            if "error" in written:
                raise OSError(written["error"])
            for name, place in written["slices"].items():
                shape = place.pop("shape")
                index.setdefault(name, {"shape": shape, "slices": []})["slices"].append(place)
            mark.unlink()
        (self.folder / INDEX).write_text(json.dumps(index, indent=1))


def read_shards(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors, put together. Raises ValueError where the slices of one do not cover it."""
    index, files, tensors = json.loads((folder / INDEX).read_text()), dict[str, Any](), dict[str, torch.Tensor]()
    for name, entry in index.items():
        parts = []
        for place in sorted(entry["slices"], key=lambda place: place["start"]):
            if place["file"] not in files:
                files[place["file"]] = safe_open(folder / place["file"], "pt")
            parts.append(files[place["file"]].get_tensor(name))
        tensor = torch.cat(parts) if parts[0].ndim else parts[0]
        if list(tensor.shape) != entry["shape"]:
            raise ValueError(f"{folder} has {list(tensor.shape)} of {name}, which is {entry['shape']}")
        tensors[name] = tensor
    return tensors
