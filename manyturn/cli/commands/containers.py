"""Commands about containers, and the images that they start from."""

from cyclopts import App

images_app = App(name="images", help="Images that sandboxes start from.")
containers_app = App(name="containers", help="Sandboxes of environments that run code.")


@images_app.command(name="build")
def images_build(name: str | None = None) -> None:
    """Make an image with Python, pytest and git from Debian's packages, without a registry; needs mmdebstrap and root.

    Parameters
    ----------
    name
        The image's name. Default: manyturn-python:1, which environments start from unless another is named.
    """
    from manyturn.containers.engine.images import NAME, build

    build(name or NAME)


@images_app.command(name="list")
def images_list() -> None:
    """List the engine's images, and which of them were made here."""
    from rich.console import Console
    from rich.table import Table

    from manyturn.containers.engine.images import RECIPE, images

    table, made = Table("image", "id", "MB", "from", "made here"), {RECIPE: "yes", None: ""}
    for one in images():
        table.add_row(
            one.name,
            one.id.removeprefix("sha256:")[:12],
            f"{one.megabytes:.0f}",
            one.created,
            made.get(one.recipe, "older recipe"),
        )
    Console(highlight=False).print(table)


@containers_app.command(name="check")
def containers_check() -> None:
    """Look at the engine under DOCKER_HOST: what it enforces, and what a sandbox sees that is started there."""
    from rich.console import Console
    from rich.table import Table

    from manyturn.containers.docker.docker_sandbox import DockerSandbox
    from manyturn.containers.engine.container_engine import ContainerEngine
    from manyturn.containers.engine.images import resolve
    from manyturn.containers.engine.preflight import demand, examined

    state, engine, table = examined(), ContainerEngine(), Table(show_header=False)
    for line in state.lines():
        table.add_row(*line.split(maxsplit=1))
    Console(highlight=False).print(table)
    demand(state, engine)
    image = resolve(engine.image).removeprefix("sha256:")[:12]
    sandbox = DockerSandbox(engine)
    sandbox.start()
    sandbox.stop()
    print(f"sandboxes start from {engine.image}, {image}, and hold what is demanded of them")
    if not sandbox.landlock:
        print("without Landlock: a command that uses up its memory can end its container, and its episode fails")


@containers_app.command(name="reap")
def containers_reap(*, everyone: bool = False) -> None:
    """Remove containers whose process has ended.

    Parameters
    ----------
    everyone
        Also those that are in use, by any process here or elsewhere.
    """
    from manyturn.containers.engine.reaper import reap

    removed = reap(everyone)
    print(*removed, f"{len(removed)} containers removed", sep="\n")
