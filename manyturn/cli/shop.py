"""A person goes shopping in their own browser, on the pages that an agent's browser shows."""

import contextlib
from collections.abc import Mapping
from typing import Any

from manyturn.envs.contract.environments import make
from manyturn.envs.contract.keys import generator, seed_of
from manyturn.envs.shop.site import Site
from manyturn.envs.shop.visit import Visit
from manyturn.envs.shop.visit_env import VisitEnv


class Reception:
    """Gives whoever comes a visit and a task of their own.

    Args:
        env: id of a shop, or FILE.py:Class.
        env_args: arguments of its constructor.
        split: where tasks are drawn from.
        seed: decides which tasks are drawn.

    Raises:
        ValueError: it is no shop.
    """

    def __init__(self, env: str, env_args: Mapping[str, Any] | None = None, split: str = "train", seed: int = 0):
        self._make, self._seed, self._came = (env, {**(env_args or {}), "split": split}), seed, 0
        first = self._shop()
        if not isinstance(first, VisitEnv):
            raise ValueError(f"{env} is no shop with pages: name one, such as manyturn/Shop-v0")
        self._tasks = first.tasks(split)

    def arrive(self, address: str) -> Visit:
        """A visit with the next task; its receipt leads to ``address``, where another begins."""
        self._came += 1
        task = self._tasks[int(generator("shop", self._seed, self._came).integers(len(self._tasks)))]
        shop = self._shop()
        shop.reset(seed=seed_of("shop visit", self._seed, self._came), options={"task": task})
        return Visit(shop, address)

    def _shop(self) -> Any:
        name, arguments = self._make
        return make(name, **arguments).unwrapped


def serve_shop(
    env: str, env_args: Mapping[str, Any] | None = None, *, port: int = 0, split: str = "train", seed: int = 0
) -> None:
    """Serve a shop on this machine until Ctrl-C; the line that is printed has the address.

    Args:
        port: 0 takes any that is free.
        env, env_args, split, seed: as for ``Reception``.
    """
    reception = Reception(env, env_args, split, seed)
    site = Site(port)
    print(f"{env}: {site.door(reception.arrive)} (Ctrl-C ends)", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        site.wait()
    site.stop()
