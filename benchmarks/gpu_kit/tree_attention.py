"""Attention of a token tree in one call and run by run: distance from float64, seconds, and operations launched.

Distances are those of a small tree, from the CPU in float64. Seconds are those of a layer's attention forwards and
backwards, in bfloat16, over runs as long as Household's after beginnings as long as theirs.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_kit.cases import Kit
from benchmarks.gpu_kit.measurement_log import Figures
from benchmarks.gpu_kit.profile import profiled
from manyturn.trainers.learn.passes.trie.piece_attention import Pieces
from manyturn.trainers.learn.passes.trie.segment_attention import Segments
from manyturn.trainers.learn.passes.trie.tree import Tree

_HEADS, _GROUPS, _SIZE = 12, 2, 128  # of 1.5B
_SMALL, _HOUSEHOLD, _TOY = (8, 200, 100), (56, 622, 474), (4, 20, 10)  # runs, tokens before each, tokens of each
_BOUNDS = {"output": 2e-2, "gradient": 2e-2}  # bfloat16 has 8 bits, and one operation's result is rounded once or twice
Attend = Callable[..., torch.Tensor]


def compared(kit: Kit) -> Figures:
    """Figures of both ways."""
    distances = _distances(_tree(*(_TOY if kit.toy else _SMALL)), kit.device.torch)
    figures: Figures = {**distances, "bounds": _BOUNDS, "ok": all(distances[name] <= _BOUNDS[name] for name in _BOUNDS)}
    tree = _tree(*(_TOY if kit.toy else _HOUSEHOLD))
    states = _states(len(tree.ids), torch.bfloat16, kit.device.torch)
    for name, attend in _ways(tree, kit.device.torch).items():
        figures[f"{name}_seconds"] = kit.device.seconds(lambda attend=attend: _both(attend, states))
        figures[f"{name}_launches"] = profiled(kit.device, lambda attend=attend: _both(attend, states), 1)["launches"]
    return figures


def _distances(tree: Tree, device: torch.device) -> dict[str, float]:
    cpu = torch.device("cpu")
    exact = _both(_ways(tree, cpu)["pieces"], _states(len(tree.ids), torch.float64, cpu))
    ours = _both(_ways(tree, device)["one_call"], _states(len(tree.ids), torch.bfloat16, device))
    apart = [float((one.cpu().double() - other).norm() / other.norm()) for one, other in zip(ours, exact, strict=True)]
    return {"output": apart[0], "gradient": max(apart[1:])}


def _ways(tree: Tree, device: torch.device) -> dict[str, Attend]:
    pieces, segments = Pieces(tree.runs, device), Segments(tree.runs, device)
    module: Any = SimpleNamespace(num_key_value_groups=_HEADS // _GROUPS, is_causal=True)
    scale = _SIZE**-0.5
    return {
        "one_call": lambda *states: segments.attend(*states, scale),
        "pieces": lambda *states: pieces.attend(module, *states, scaling=scale),
    }


def _both(attend: Attend, states: list[torch.Tensor]) -> list[torch.Tensor]:
    """The output and the gradients of its sum of squares."""
    output = attend(*states)
    return [output.detach(), *torch.autograd.grad(output.float().square().sum(), states)]


def _states(nodes: int, kind: torch.dtype, device: torch.device) -> list[torch.Tensor]:
    """Queries, keys and values of random numbers, which bfloat16 has exactly."""
    noise = torch.Generator().manual_seed(0)
    made = [torch.randn(1, heads, nodes, _SIZE, generator=noise) for heads in (_HEADS, _GROUPS, _GROUPS)]
    return [each.bfloat16().to(device, kind).requires_grad_() for each in made]


def _tree(runs: int, before: int, tokens: int) -> Tree:
    begin = np.zeros(before, np.int64)
    return Tree.of([np.r_[begin, np.full(tokens, 1 + run)] for run in range(runs)], least=1)
