"""Checkpoints that are either complete or not there: written aside, synced, renamed, verified by hash.

Weights and optimiser state are safetensors, the rest is JSON; nothing is pickled.
"""

import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from manyturn.agents.model.shard_files import WrittenShards, read_shards
from manyturn.envs.contract.atomic_files import clear_leftovers, sync

MANIFEST = "manifest.json"
WARMED_UP = "step_000000"  # the end of the warm-up
FORMAT = 2  # of the files and of the state's entries; another number cannot be continued from
ONE_POLICY = "policy"  # the policy of a run that trains only one
_PACKAGES = ("manyturn", "torch", "transformers")  # what the bits of a run depend on


class CheckpointError(RuntimeError):
    """A checkpoint is missing or damaged."""


class OtherFormat(CheckpointError):
    """A checkpoint was written by code that wrote other files, or other entries of the state."""


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Saved = Mapping[str, tuple[Callable[[Path], object], dict[str, torch.Tensor] | WrittenShards]]


def beside(what: str, policy: str) -> str:
    """The name of a policy's part of a checkpoint.

    >>> beside("model", ONE_POLICY), beside("model", "seller")
    ('model', 'model-seller')
    """
    return what if policy == ONE_POLICY else f"{what}-{policy}"


def save_checkpoint(folder: Path, step: int, policies: Saved, state: Mapping[str, Any], keep: int) -> Path:
    """As ``complete_checkpoint``, from the beginning."""
    return complete_checkpoint(begin_checkpoint(folder, step), policies, state, keep)


def begin_checkpoint(folder: Path, step: int) -> Path:
    """A place for the files of ``folder/step_N``; what was begun before and is not complete goes."""
    clear_leftovers(folder)
    aside = folder / f".step_{step:06d}.writing"
    aside.mkdir(parents=True)
    return aside


def shards_of(aside: Path, policy: str) -> Path:
    """The folder in which ranks write their shares of a policy's tensors."""
    return aside / f"{beside('learner', policy)}.shards"


def complete_checkpoint(
    aside: Path, policies: Saved, state: Mapping[str, Any], keep: int, heed: Callable[[], None] = lambda: None
) -> Path:
    """Write the files, rename their folder to ``step_N``, and remove all but the newest ``keep``, and a warm-up's end.

    Args:
        aside: what ``begin_checkpoint`` has made.
        policies: name of each policy -> what writes its model, and tensors such as the optimiser's state, or what ranks
            write of them into ``shards_of``.
        state: plain values that a resumed run needs.
        heed: called from time to time; by an error it ends the writing, of which nothing counts then.
    """
    folder, target = aside.parent, aside.with_name(aside.name.removeprefix(".").removesuffix(".writing"))
    for name, (write_model, tensors) in policies.items():
        write_model(aside / beside("model", name))
        heed()
        if isinstance(tensors, WrittenShards):
            tensors.complete(heed)
        else:
            save_file(tensors, aside / f"{beside('learner', name)}.safetensors")
        heed()
    (aside / "state.json").write_text(json.dumps(state, indent=1))
    files = sorted(path for path in aside.rglob("*") if path.is_file())
    for path in files:
        sync(path)
        heed()
    facts = {str(path.relative_to(aside)): {"sha256": file_hash(path), "bytes": path.stat().st_size} for path in files}
    manifest = {"format": FORMAT, "versions": _versions(), "files": facts}
    (aside / MANIFEST).write_text(json.dumps(manifest, indent=1))
    sync(aside / MANIFEST)
    sync(aside)
    heed()
    if target.exists():
        shutil.rmtree(target)
    aside.rename(target)
    sync(folder)
    stays = WARMED_UP if state.get("warmup", {}).get("updates") else None  # other runs may begin from it
    for old in sorted(folder.glob("step_*"))[:-keep]:
        if old.name != stays:
            shutil.rmtree(old)
    return target


def verify(folder: Path) -> None:
    """Raise CheckpointError unless this code can read the checkpoint, and every file of it is there, unchanged."""
    for name, facts in _manifest(folder)["files"].items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != facts["bytes"] or file_hash(path) != facts["sha256"]:
            raise CheckpointError(f"{path} is missing or differs from the manifest")


def version_notice(folder: Path) -> str | None:
    """The warning on continuing from a checkpoint of other versions, if they differ."""
    wrote, now = _manifest(folder)["versions"], _versions()
    odd = [f"{name} {wrote.get(name)}, now {version}" for name, version in now.items() if wrote.get(name) != version]
    if not odd:
        return None
    return f"{folder} was written by {'; '.join(odd)}: the run goes on, but its bits may differ from an unbroken one's"


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder} has no readable manifest: {error}") from error
    if manifest.get("format") != FORMAT:
        version = manifest.get("versions", {}).get("manyturn", "of another version")
        raise OtherFormat(
            f"{folder} was written by manyturn {version} with checkpoint format {manifest.get('format')}, this is "
            f"format {FORMAT}: continue it with that version, or evaluate a copy of its folder model"
        )
    return manifest


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def newest_checkpoint(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest intact checkpoint, and what was wrong with newer ones; raises OtherFormat."""
    problems = []
    for candidate in sorted(folder.glob("step_*"), reverse=True):
        try:
            verify(candidate)
        except OtherFormat:
            raise
        except CheckpointError as error:
            problems.append(str(error))
            continue
        return candidate, problems
    return None, problems


def read_state(checkpoint: Path) -> dict[str, Any]:
    """The plain values of a checkpoint."""
    return json.loads((checkpoint / "state.json").read_text())


def read_tensors(checkpoint: Path, policy: str = ONE_POLICY) -> dict[str, torch.Tensor]:
    """The tensors of a policy in a checkpoint, without the model's weights."""
    shards = shards_of(checkpoint, policy)
    return read_shards(shards) if shards.is_dir() else load_file(checkpoint / f"{shards.stem}.safetensors")


def weights_hash(model: torch.nn.Module) -> str:
    """Hash of all weights to the bit: two runs that agree here are the same run."""
    state = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        state.update(name.encode())
        state.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return state.hexdigest()
