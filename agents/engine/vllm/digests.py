"""A checksum of weights, by which two processes know that they hold the same ones."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def tensor_digest(tensor: "torch.Tensor") -> str:
    """Hash of a tensor's type, shape and bytes."""
    import torch

    found = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=16)
    found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def combined(digests: Mapping[str, str]) -> str:
    """One hash of named ones, whatever their order."""
    lines = "\n".join(f"{name} {digests[name]}" for name in sorted(digests))
    return hashlib.blake2b(lines.encode(), digest_size=16).hexdigest()
