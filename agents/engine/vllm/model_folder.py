"""The folder that vLLM reads a model from: its configuration, the weights of one version, and adapters."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.weight_source import Weights

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_HEAD = "lm_head.weight"


class ModelFolder:
    """A copy of a model on the disk, which each version replaces completely or not at all.

    The output head is written apart from the embeddings that it may be tied to: vLLM's CPU build keeps a packed copy of
    a tied head, which new weights never reach.

    Args:
        model: as it is now; with adapters on it, the model below them is written once.
        dtype: type of the numbers on the disk.
        above: folder that it is made in; None: that of temporary files.

    Attributes:
        file: the weights, or those of the model below the adapters.
        adapters: folder of the newest adapters; None without any.
        digest: checksum of ``file``.
    """

    def __init__(self, model: "PreTrainedModel", dtype: "torch.dtype", above: Path | None = None):
        from peft import PeftModel

        self.path = Path(tempfile.mkdtemp(prefix="manyturn-vllm-", dir=above))
        self.file, self.adapters, self.digest = self.path / "model.safetensors", None, ""
        self._dtype, self._count = dtype, 0
        self._peft = model.peft_config["default"] if isinstance(model, PeftModel) else None
        below: Any = model.get_base_model() if isinstance(model, PeftModel) else model
        self._tied_to = dict(below.all_tied_weights_keys).get(_HEAD)
        config = below.config.__class__.from_dict({**below.config.to_dict(), "tie_word_embeddings": False})
        config.architectures, config.dtype = [type(below).__name__], dtype
        config.save_pretrained(self.path)
        named = ((_plain(name), tensor.detach()) for name, tensor in below.named_parameters() if ".lora_" not in name)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._write_weights(dict(named))

    def write(self, weights: Weights) -> None:
        """Put a version in place of the last. Raises EngineError if it is of another model."""
        tensors = dict(weights.tensors())
        if self._peft is not None:
            self._write_adapters(tensors)
            return
        self._write_weights(tensors)

    def _write_weights(self, tensors: "dict[str, torch.Tensor]") -> None:
        from safetensors.torch import save_file

        if self._tied_to is not None:
            tensors = {**tensors, _HEAD: tensors[self._tied_to]}
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        self._shapes = self._shapes or shapes
        if odd := {name for name, _ in shapes.items() ^ self._shapes.items()}:
            raise EngineError(f"the new weights are of another model: {min(odd)}")
        # A copy each: what shares memory is refused, and the learner may go on to change what it gave.
        copied = {name: tensor.to(self._dtype, copy=True).cpu().contiguous() for name, tensor in tensors.items()}
        aside = self.path / ".aside"
        save_file(copied, aside)
        os.replace(aside, self.file)
        self.digest = combined({name: tensor_digest(tensor) for name, tensor in copied.items()})

    def _write_adapters(self, tensors: "dict[str, torch.Tensor]") -> None:
        from safetensors.torch import save_file

        assert self._peft is not None
        self._count += 1
        folder, old = self.path / f"adapters-{self._count}", self.adapters
        aside = Path(tempfile.mkdtemp(dir=self.path))
        self._peft.save_pretrained(str(aside))
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            aside / "adapter_model.safetensors",
        )
        aside.rename(folder)
        self.adapters = folder
        if old is not None:
            shutil.rmtree(old)

    def remove(self) -> None:
        """It is needed no more."""
        shutil.rmtree(self.path, ignore_errors=True)


def _plain(name: str) -> str:
    """A parameter's name without the adapter that is on its layer.

    >>> _plain("model.layers.0.mlp.up_proj.base_layer.weight")
    'model.layers.0.mlp.up_proj.weight'
    """
    return name.replace(".base_layer.", ".")


def tensor_digest(tensor: "torch.Tensor") -> str:
    """Hash of a tensor's type, shape and bytes."""
    import torch

    hasher = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=16)
    hasher.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()


def combined(digests: Mapping[str, str]) -> str:
    """One hash of named ones, whatever their order."""
    lines = "\n".join(f"{name} {digests[name]}" for name in sorted(digests))
    return hashlib.blake2b(lines.encode(), digest_size=16).hexdigest()
