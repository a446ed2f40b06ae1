"""Inference by samplers that Ray places, along with the hosts of a run, and starts again where they die."""

from manyturn.agents.engine.engine_config import EngineConfig, EngineContext
from manyturn.agents.engine.remote_samplers.remote_engine import RemoteEngine, Samplers
from manyturn.envs.hosting.remote.ray_seats import RaySeats

_ADVICE = (
    "Ray has placed it there: can this machine reach that address?",
    "go on with manyturn train --resume RUN; placement in its config.toml may be another",
)


class RayRemoteEngine(RemoteEngine):
    """Draws with the samplers of seats that have been entered.

    Args:
        config, wait, silence, threads: as for ``RemoteEngine`` and ``Samplers``.
    """

    def __init__(
        self,
        context: EngineContext,
        config: EngineConfig,
        seats: RaySeats,
        wait: float,
        silence: float,
        threads: int,
    ):
        super().__init__(context, config, Samplers(seats.sampler_urls, seats.token, wait, silence, threads, *_ADVICE))
        self._seats = seats
        seats.drawing = self

    async def shutdown(self) -> None:
        self._seats.drawing = None
        await super().shutdown()
