"""Options of the engine with vLLM."""

from typing import ClassVar, Literal

from pydantic import Field

from manyturn.agents.engine import Capabilities
from manyturn.agents.engine_config import EngineConfig


class VllmConfig(EngineConfig):
    """Inference by vLLM, in processes of its own on this machine; requests join and leave its running batch."""

    is_separate: ClassVar[bool] = True

    name: Literal["vllm"] = "vllm"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type that vLLM computes in; auto is float32 on a CPU and bfloat16 on a GPU."""
    kv_gib: float = Field(default=1.0, gt=0)
    """GiB of memory for keys and values; requests that do not fit wait."""
    max_batch: int = Field(default=256, ge=1)
    """Replies that are computed together, at most."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(lora=True)

    def precision(self, on_gpu: bool) -> str:
        """The type, where auto is made out."""
        return self.dtype if self.dtype != "auto" else "bfloat16" if on_gpu else "float32"
