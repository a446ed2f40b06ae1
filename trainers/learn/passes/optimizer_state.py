"""An optimiser's state as named tensors, for checkpoints. What ranks hold in shards is put together."""

from collections.abc import Mapping, Sequence

import torch

from manyturn.agents.model.model_internals import host_copy


def complete(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor of which this may be one rank's shard (a DTensor); all ranks ask at once."""
    full_tensor = getattr(tensor, "full_tensor", None)
    return tensor if full_tensor is None else full_tensor()


def at_rank_0(tensor: torch.Tensor) -> torch.Tensor:
    """The same, but on the CPU, and in rank 0 alone: the others get nothing."""
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None:
        return tensor
    full = complete(tensor)
    return full.cpu() if mesh.get_rank() == 0 else torch.empty(0)


def optimizer_tensors(
    prefix: str, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Copies of ``named_state`` in the host's memory, whole."""
    return {name: host_copy(at_rank_0(value)) for name, value in named_state(prefix, optimizer, parameters).items()}


def named_state(
    prefix: str, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Tensors of an optimiser, by the name ``prefix.number.field``, the number counting the parameters."""
    return {
        f"{prefix}.{number}.{field}": value
        for number, parameter in enumerate(parameters)
        for field, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer(
    prefix: str,
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[torch.Tensor],
    tensors: Mapping[str, torch.Tensor],
) -> None:
    """The inverse of ``optimizer_tensors``; tensors of other names are left alone."""
    optimizer.state.clear()
    for name, value in tensors.items():
        if name.startswith(f"{prefix}."):
            number, field = name.removeprefix(f"{prefix}.").split(".")
            parameter = parameters[int(number)]
            # Fused AdamW counts its steps where the weights are.
            optimizer.state[parameter][field] = value.to(parameter.device)
