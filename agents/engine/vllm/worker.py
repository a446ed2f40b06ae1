"""Extension of vLLM's worker: loads a file of weights and returns the checksum of what it read.

vLLM adds the methods of this class to its worker's, in the worker's process (``worker_extension_cls``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyturn.agents.engine.vllm.model_folder import combined, tensor_digest

if TYPE_CHECKING:
    import torch

EXTENSION = "manyturn.agents.engine.vllm.worker.LoadsChecked"
WEIGHTS = "model.safetensors"  # in a model's folder


class LoadsChecked:
    """One more method of a worker."""

    model_runner: Any

    def load_checked(self, file: str) -> str:
        """Put a safetensors file's weights in place of those that are there; returns the checksum of what was read.

        Raises ValueError before anything is replaced if the file is of another model.
        """
        from safetensors import safe_open

        ours, theirs = shapes(Path(self.model_runner.model_config.model) / WEIGHTS), shapes(Path(file))
        if odd := {name for name, _ in ours.items() ^ theirs.items()}:
            raise ValueError(f"the weights are of another model than is served: {min(odd)}")
        digests: dict[str, str] = {}

        def read() -> Iterator[tuple[str, "torch.Tensor"]]:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118  (it is no mapping)
                    tensor = opened.get_tensor(name)
                    digests[name] = tensor_digest(tensor)
                    yield name, tensor

        self.model_runner.reload_weights(weights_iterator=read())
        return combined(digests)


def shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape of each tensor in a safetensors file."""
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
