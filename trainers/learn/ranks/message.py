"""Messages of rank 0 to the others: plain values and tensors, as bytes of safetensors. Nothing is pickled."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import load, save

from manyturn.agents.text.command_tree import tree_of
from manyturn.trainers.learn.passes.samples import Rows, Sample

_PLAIN = "plain"
_ROWS = ("ids", "reply_mask", "engine_logprob", "reply")


@dataclass
class RankMessage:
    """Something to do.

    Attributes:
        what: its name.
        plain: JSON values.
        tensors: by name.
    """

    what: str
    plain: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """All of it."""
        text = json.dumps({"what": self.what, **self.plain}).encode()
        plain = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        return save(
            {_PLAIN: plain, **{name: value.detach().cpu().contiguous() for name, value in self.tensors.items()}}
        )

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """The inverse of ``encoded``."""
        tensors = load(data)
        plain = json.loads(tensors.pop(_PLAIN).numpy().tobytes())
        return cls(plain.pop("what"), plain, tensors)

    def put_rows(self, name: str, rows: Rows | None) -> None:
        """One tensor for each sample, of any length; None: nothing."""
        if rows is not None:
            self.tensors[name] = torch.cat([row.cpu() for row in rows]) if rows else torch.empty(0)
            self.tensors[f"{name}.length"] = torch.tensor([len(row) for row in rows])

    def rows(self, name: str) -> Rows | None:
        """The inverse of ``put_rows``."""
        if name not in self.tensors:
            return None
        return list(self.tensors[name].split(self.tensors[f"{name}.length"].tolist()))

    def given_rows(self, name: str) -> Rows:
        """Rows that have to be there."""
        rows = self.rows(name)
        assert rows is not None, f"rank 0 sends {name} with {self.what}"
        return rows

    def put_samples(self, samples: Sequence[Sample]) -> None:
        """The samples of a step."""
        for name in _ROWS:
            self.put_rows(name, [torch.from_numpy(np.ascontiguousarray(getattr(s, name))) for s in samples])
        self.tensors["episode"] = torch.tensor([sample.episode for sample in samples])
        self.tensors["turns"] = torch.tensor([sample.turns for sample in samples])
        limited = {i: {at: list(map(int, ids)) for at, ids in s.allowed.items()} for i, s in enumerate(samples)}
        self.plain["allowed"] = {number: places for number, places in limited.items() if places}
        lists = dict.fromkeys(tree.replies for sample in samples for tree in sample.commands.values())
        numbers = {replies: number for number, replies in enumerate(lists)}
        self.plain["lists"] = list(lists)
        self.plain["commands"] = {
            i: [[place, numbers[tree.replies]] for place, tree in s.commands.items()]
            for i, s in enumerate(samples)
            if s.commands
        }

    def samples(self) -> list[Sample]:
        """The inverse of ``put_samples``."""
        columns = zip(*([row.numpy() for row in self.given_rows(name)] for name in _ROWS), strict=True)
        allowed = {int(number): _by_place(places) for number, places in self.plain["allowed"].items()}
        lists = [tree_of(tuple(map(tuple, replies))) for replies in self.plain["lists"]]
        commands = {
            int(number): {place: lists[which] for place, which in places}
            for number, places in self.plain["commands"].items()
        }
        episodes, turns = self.tensors["episode"].tolist(), self.tensors["turns"].tolist()
        return [
            Sample(episode, *row, turns=count, allowed=allowed.get(number, {}), commands=commands.get(number, {}))
            for number, (episode, row, count) in enumerate(zip(episodes, columns, turns, strict=True))
        ]


def _by_place(places: Mapping[str, list[int]]) -> dict[int, list[int]]:
    return {int(place): tokens for place, tokens in places.items()}
