"""The wires by which environments can be served, by name; each is imported only where it is asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from manyturn.serving.episodes import Episodes


class Wire(NamedTuple):
    """Wire protocol for clients of one kind.

    Attributes:
        path: where on the server they find it.
        app: makes the application from the episodes behind it.
    """

    path: str
    app: "Callable[[Episodes], ASGIApp]"


_EXTRAS = {"mcp": "serve,mcp", "openenv": "serve", "nemo-gym": "serve", "ors": "serve"}


def wire_of(name: str) -> Wire:
    """A wire by its name. Raises ImportError if what it needs is not installed."""
    with installed(f"manyturn serve --as {name}", _EXTRAS[name]):
        if name == "mcp":
            from manyturn.serving.wires.mcp import PATH, mcp_app

            return Wire(PATH, mcp_app)
        if name == "nemo-gym":
            from manyturn.serving.wires.nemo_gym import nemo_gym_app

            return Wire("", nemo_gym_app)
        if name == "ors":
            from manyturn.serving.wires.ors import ors_app

            return Wire("", ors_app)
        from manyturn.serving.wires.openenv import openenv_app

        return Wire("", openenv_app)


@contextmanager
def installed(command: str, extra: str) -> Iterator[None]:
    """Around imports of what a server needs. Raises ImportError that names the extra to install."""
    try:
        import uvicorn  # noqa: F401
        import wsproto  # noqa: F401

        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("manyturn"):
            raise
        raise ImportError(f"{command} needs the package {error.name}: pip install 'manyturn[{extra}]'") from error
