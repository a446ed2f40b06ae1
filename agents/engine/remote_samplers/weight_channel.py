"""Transfer of weights to another process: complete, numbered and with a checksum, or not at all.

The sender writes them down once, in the format of safetensors, and sends parts of that. The receiver puts the parts
aside. Only when all are there, their checksum is right and they are of the model that is there, does it let its engine
have them. Whatever breaks off before leaves the engine's weights as they were.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.weight_source import Weights

if TYPE_CHECKING:
    import torch

_PART = 4 * 2**20  # bytes of one part: as base64 it is below what a server takes in one message
_HEAD = 2**24  # more bytes than the format takes for names and shapes

Ask = Callable[..., Awaitable[Any]]


class Packed:
    """Weights of one version, ready to be sent any number of times.

    Attributes:
        size: bytes.
        digest: checksum of them.
    """

    def __init__(self, weights: Weights, version: int):
        from safetensors.torch import save

        # A copy: the learner goes on to change what it gave.
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.tensors()}
        self._data, self.version = save(tensors), version
        self.size, self.digest = len(self._data), _digest(self._data)

    async def send(self, ask: Ask, load: int) -> None:
        """Have the other side load them. Raises EngineError where it does not take them, and what ``ask`` raises.

        Args:
            ask: puts a question of ``messages.py``.
            load: a number that no other transfer of this connection has.
        """
        await ask("weights", load=load, version=self.version, size=self.size, digest=self.digest)
        for at in range(0, self.size, _PART):
            part = base64.b64encode(self._data[at : at + _PART]).decode()
            await ask("part", load=load, at=at, data=part)
        if (read := await ask("commit", load=load)) != self.digest:
            raise EngineError(f"the weights arrived with checksum {read!r:.40}, and left with {self.digest}")


class Receiver:
    """Puts weights together. Its methods raise EngineError for what is not the next part of the transfer under way.

    Args:
        shapes: name, shape and type of each tensor of the model that is there.
    """

    def __init__(self, shapes: Mapping[str, tuple[tuple[int, ...], str]], size: int):
        self._shapes, self._most = dict(shapes), size + _HEAD
        self._drop()

    def begin(self, load: int, version: int, size: int, digest: str) -> None:
        """A transfer begins, and one that was under way is given up."""
        self._drop()
        if not 0 < size <= self._most:
            raise EngineError(f"weights of {size} bytes are of another model")
        self._load, self.version, self._size, self._digest = load, version, size, digest

    def take(self, load: int, at: int, data: str) -> None:
        """The next part."""
        self._check(load)
        part = base64.b64decode(data, validate=True)
        if at != len(self._data) or len(self._data) + len(part) > self._size:
            self._drop()
            raise EngineError("a part of the weights is missing: send them once more")
        self._data += part

    def complete(self, load: int) -> "Received":
        """The weights, once all of them are there and right. They are kept here no more."""
        self._check(load)
        data, size, expected, version = bytes(self._data), self._size, self._digest, self.version
        self._drop()
        if len(data) != size or (digest := _digest(data)) != expected:
            raise EngineError(f"the weights of version {version} are torn: {len(data)} of {size} bytes came right")
        return Received(data, digest, version, self._shapes)

    def _check(self, load: int) -> None:
        if load != self._load:
            raise EngineError("no such transfer of weights is under way: send them once more")

    def _drop(self) -> None:
        self._load: int | None = None
        self._data, self._size, self._digest, self.version = bytearray(), 0, "", 0


class Received:
    """Weights that have arrived, as a source for an engine; see ``Weights``.

    Raises EngineError where they are of another model.
    """

    module = None

    def __init__(self, data: bytes, digest: str, version: int, shapes: Mapping[str, tuple[tuple[int, ...], str]]):
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            self._tensors = load(data)
        except (SafetensorError, ValueError) as error:
            raise EngineError(f"the weights cannot be read: {error}") from error
        self.digest, self.version = digest, version
        if odd := sorted({name for name, _ in shapes_of(self._tensors).items() ^ dict(shapes).items()}):
            raise EngineError(f"the new weights are of another model: {odd[0]}")

    def tensors(self) -> "Iterator[tuple[str, torch.Tensor]]":
        yield from self._tensors.items()


def shapes_of(tensors: "Mapping[str, torch.Tensor]") -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of each tensor, by its name."""
    return {name: (tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors.items()}


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
