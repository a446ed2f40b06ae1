"""A server of vLLM's: what is asked of it over HTTP, and what its errors mean."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from manyturn.agents.engine.engine import EngineError, EngineRefused
from manyturn.agents.engine.vllm.authentication import VARIABLE, token
from manyturn.agents.engine.vllm.reply_request import Drawn, DrawRequest
from manyturn.agents.engine.vllm.versions import SERIES, fits

START = "start it with python -m manyturn.agents.engine.vllm.server MODEL"
_CONNECT = 10.0  # seconds until a server that does not take the connection counts as gone
_IDLE = 2.0  # seconds that an unused connection is kept; vLLM closes its end after 5, which may cross with a request
# vLLM closes a connection right after it says that an order failed. The next order on that one would be lost: each has
# one of its own.
_ORDER = {"Connection": "close"}


class OthersWeights(EngineError):
    """The server may hold other weights than it was given: it was started again, or another program uses it too."""


class ServerSilent(OthersWeights):
    """The server does not answer."""


class Server:
    """One server. Every method raises EngineError where it does not answer as it should.

    Args:
        address: such as http://127.0.0.1:8000.
        timeout: seconds that an answer may take.

    Attributes:
        weights: the name that was given to those that it holds.
        is_down: the last request brought no answer at all.
    """

    def __init__(self, address: str, timeout: float):
        self.address, self.weights, self.is_down = address, "", False
        self._timeout = httpx.Timeout(timeout, connect=min(_CONNECT, timeout))
        self._adapters = ""
        self._client: httpx.AsyncClient | None = None

    async def draw(self, request: DrawRequest) -> Drawn:
        """A reply; see ``Drawer``."""
        ids_sent, weights = list(request.prompt), self.weights
        body = {
            "token_ids": ids_sent,
            "sampling_params": request.sampling_params,
            "cache_salt": request.salt,
            "return_token_ids": True,
            **({"model": self._adapters} if request.adapters else {}),
        }
        answer = await self._ask("POST", "/inference/v1/generate", body, {})
        try:
            [choice] = answer["choices"]
            ids, steps = choice["token_ids"], choice["logprobs"]["content"]
            drawn_with = {span["version"] for span in choice["weight_versions"] or ()}
            computed, finish = answer["prompt_token_ids"], choice["finish_reason"]
            ids_scored = [step["token_id"] for step in steps]
            logprobs = [float(step["logprob"]) for step in steps]
            cached = ((answer.get("usage") or {}).get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(f"the answer of {self.address} has no tokens and log-probabilities: {error}") from error
        if finish not in ("stop", "length") or not ids:
            raise EngineError(f"{self.address} broke the reply off")
        if computed != ids_sent or ids_scored != ids:
            raise EngineError(f"{self.address} computed another prompt than was sent, so its template is not ours")
        if drawn_with != {weights}:
            raise OthersWeights(f"{self.address} draws with weights {sorted(drawn_with)}, and was given {weights}")
        return Drawn(ids, logprobs, cached)

    async def check_release(self) -> None:
        """Raises EngineRefused for a release that the engine is not for."""
        answer = await self._ask("GET", "/version")
        release = answer.get("version") if isinstance(answer, dict) else None
        if not isinstance(release, str):
            raise EngineRefused(f"{self.address} is no server of vLLM's: {START}")
        if not fits(release):
            raise EngineRefused(f"{self.address} runs vLLM {release}, which is not of the series {SERIES}: {START}")

    async def reload(self, file: Path) -> list[str]:
        """Load the weights of a file; returns the checksums of what each worker read."""
        try:
            answer = await self._post("/collective_rpc", {"method": "load_checked", "args": [str(file)]})
        except ServerSilent:
            raise
        except EngineError as error:
            raise EngineError(
                f"{error}. It was to load {file}: it has to serve the learner's model, and to see engine.folder"
            ) from error
        return answer["results"]

    async def take_adapters(self, adapters: Path, name: str) -> None:
        """Load adapters under a name, and forget those before."""
        with contextlib.suppress(EngineError):  # those of an earlier try
            await self._post("/v1/unload_lora_adapter", {"lora_name": name})
        await self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(adapters)})
        old, self._adapters = self._adapters, name
        if old and old != name:
            with contextlib.suppress(EngineError):  # it was started again, and does not know them
                await self._post("/v1/unload_lora_adapter", {"lora_name": old})

    async def name_weights(self, name: str) -> None:
        """Have each reply say that it was drawn with weights of this name."""
        await self._post("/update_weight_version", {"new_version": name})
        self.weights = name

    async def pause(self) -> None:
        """Break off what is being drawn, forget keys and values, and take nothing on."""
        await self._post("/pause?mode=abort&clear_cache=true")

    async def resume(self) -> None:
        """Draw again, for whoever asks."""
        await self._post("/resume")

    async def sleep(self) -> None:
        await self._post("/sleep?level=1")

    async def wake_weights(self) -> None:
        """Be ready for new weights, without room for keys and values."""
        await self._post("/wake_up?tags=weights")

    async def wake(self) -> None:
        await self._post("/wake_up")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return await self._ask("POST", path, body)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] = _ORDER
    ) -> Any:
        if self._client is None:
            # Not by way of a proxy: servers are machines next door, and take orders from whoever reaches them.
            headers_always = {"Authorization": f"Bearer {token()}"} if token() else {}
            limits = httpx.Limits(max_connections=None, keepalive_expiry=_IDLE)
            self._client = httpx.AsyncClient(
                timeout=self._timeout, limits=limits, headers=headers_always, trust_env=False
            )
        try:
            answer = await self._client.request(method, self.address + path, json=body, headers=headers)
        except httpx.HTTPError as error:
            self.is_down = True
            cause = f"{type(error).__name__} {error}".strip()
            raise ServerSilent(f"{self.address} does not answer ({cause}): {START}") from error
        self.is_down = False
        return self._read(path.partition("?")[0], answer)

    def _read(self, path: str, answer: httpx.Response) -> Any:
        if answer.status_code == 200:
            try:
                return answer.json()
            except ValueError:
                return {}
        text = " ".join(answer.text.split())[:300]
        if answer.status_code == 401:
            raise EngineRefused(f"{self.address} says 401, {text}: set {VARIABLE} as it was when it was started")
        if answer.status_code == 404 and self._adapters and self._adapters in text:
            raise OthersWeights(f"{self.address} does not know the adapters that it was given: {text}")
        if answer.status_code in (403, 404):
            raise EngineRefused(f"{self.address} does not serve {path} ({text}): {START}")
        raise EngineError(f"{self.address} answers {answer.status_code} to {path}: {text}")
