"""What vLLM's worker does for us: load a file of weights, and say what it read.

vLLM adds the methods of this class to its worker's, in the worker's process (``worker_extension_cls``).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyturn.agents.vllm.digests import combined, tensor_digest

if TYPE_CHECKING:
    import torch

EXTENSION = "manyturn.agents.vllm.worker.LoadsChecked"


class LoadsChecked:
    """One more method of a worker."""

    model_runner: Any

    def load_checked(self, file: str) -> str:
        """Put a safetensors file's weights in place of those that are there; returns the checksum of what was read."""
        from safetensors import safe_open

        digests: dict[str, str] = {}

        def read() -> Iterator[tuple[str, "torch.Tensor"]]:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118  (it is no mapping)
                    tensor = opened.get_tensor(name)
                    digests[name] = tensor_digest(tensor)
                    yield name, tensor

        self.model_runner.reload_weights(weights_iterator=read())
        return combined(digests)
