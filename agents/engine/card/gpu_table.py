"""Data sheets of graphics cards: memory, its bandwidth, the bus to the host, products of dense bfloat16 matrices.

Sources: NVIDIA's data sheets of each card (nvidia.com/en-us/data-center/h100, /h200, /a100, /l40s; the architecture
paper of Ada for the RTX 4090). Rates are of the highest clocks, without sparsity. The bus is PCI Express with 16
lanes, of generation 5 or 4; data sheets give the sum of both directions, here is one.
"""

from typing import NamedTuple

from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.options import ConfigError


class Gpu(NamedTuple):
    """A card.

    Attributes:
        driver: part of the name that the driver gives it.
        memory: bytes.
        bandwidth: bytes a second between memory and processors.
        flops: operations a second in bfloat16.
        bus: bytes a second between host and card, one way.
    """

    driver: str
    memory: float
    bandwidth: float
    flops: float
    bus: float


_GENERATION_4, _GENERATION_5 = 32e9, 64e9  # bytes a second

GPUS = {
    "h100-pcie": Gpu("H100 PCIe", 80e9, 2.0e12, 756e12, _GENERATION_5),
    "h100-nvl": Gpu("H100 NVL", 94e9, 3.9e12, 835e12, _GENERATION_5),
    "h100": Gpu("H100", 80e9, 3.35e12, 989.4e12, _GENERATION_5),
    "h200": Gpu("H200", 141e9, 4.8e12, 989.4e12, _GENERATION_5),
    "a100-40gb": Gpu("A100-SXM4-40GB", 40e9, 1.555e12, 312e12, _GENERATION_4),
    "a100": Gpu("A100", 80e9, 2.039e12, 312e12, _GENERATION_4),
    "l40s": Gpu("L40S", 48e9, 0.864e12, 362e12, _GENERATION_4),
    "rtx-4090": Gpu("RTX 4090", 24e9, 1.008e12, 165.2e12, _GENERATION_4),
}


def gpu_named(name: str) -> Gpu:
    """The data sheet of a card. Raises ConfigError with the names that are here."""
    if name.lower() in GPUS:
        return GPUS[name.lower()]
    near = near_names(name.lower(), list(GPUS))
    raise ConfigError(f"--gpu {name} is not in the table: give {near[0] if near else 'one of ' + ', '.join(GPUS)}")
