"""Options of the engines with vLLM."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from manyturn.agents.engine.engine import Capabilities
from manyturn.agents.engine.engine_config import EngineConfig
from manyturn.agents.engine.vllm.authentication import endpoint_of


class VllmOptions(EngineConfig):
    """Options that both engines with vLLM have."""

    is_separate: ClassVar[bool] = True

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type that vLLM computes in; auto is float32 on a CPU and bfloat16 on a GPU."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(lora=True, choices=True)

    def precision(self, *, on_gpu: bool) -> str:
        """The type, where auto is made out."""
        return self.dtype if self.dtype != "auto" else "bfloat16" if on_gpu else "float32"


class VllmConfig(VllmOptions):
    """Inference by vLLM, in processes of its own on this machine; requests join and leave its running batch."""

    starts_ranks: ClassVar[bool] = True

    name: Literal["vllm"] = "vllm"
    kv_gib: float | None = Field(default=None, gt=0)
    """GiB of memory for keys and values; requests that do not fit wait. Unset: on a GPU enough for max_batch episodes
    of agent.max_context, or what the card can spare, whichever is less; on a CPU 1."""
    max_batch: int = Field(default=256, ge=1)
    """Replies that are computed together, at most."""


class VllmServerConfig(VllmOptions):
    """Inference by servers of vLLM's, on this machine or others; an episode stays with one of them."""

    name: Literal["vllm-server"] = "vllm-server"
    addresses: tuple[str, ...] = Field(min_length=1)
    """Addresses of the servers, such as http://127.0.0.1:8000; several with commas between them."""
    folder: str | None = None
    """Folder that learner and servers share, for weights; unset: one for temporary files, of this machine."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds that a server may take for one answer."""
    sleeps: bool = False
    """The servers share the learner's device, and give its memory back while it learns."""

    @field_validator("addresses", mode="before")
    @classmethod
    def _with_commas(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value

    @field_validator("addresses")
    @classmethod
    def _are_addresses(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        endpoints = tuple(endpoint_of(address) for address in addresses)
        if len(set(endpoints)) < len(endpoints):
            raise ValueError("an address is given twice: give it once")
        return endpoints
