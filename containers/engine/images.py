"""Images that sandboxes start from: any with Python and bash will do, and one that is made here without a registry."""

import hashlib
import json
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from manyturn.containers.engine.container_engine import client, engine_errors
from manyturn.containers.sandbox import EngineUnavailable

NAME = "manyturn-python:1"
"""Debian bookworm with Python 3.11, pytest 7.2 and git."""
RECIPE_LABEL = "manyturn.recipe"
_COMMAND = (
    "mmdebstrap",
    "--variant=minbase",
    "--format=tar",
    "--include=python3,python3-pytest,git,ca-certificates",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "bookworm",
    "-",  # to its output
)
_SETTINGS = (
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
    'CMD ["bash"]',
)
RECIPE = hashlib.sha256(json.dumps([_COMMAND, _SETTINGS]).encode()).hexdigest()[:16]
_BLOCK = 1 << 20


class ImageMissing(EngineUnavailable):
    """The engine has no such image and cannot get it, or it could not be made. Names the remedies."""


class ImageFacts(NamedTuple):
    """An image that the engine has.

    Attributes:
        id: the hash of its content, "sha256:...".
        recipe: hash of the recipe that it was made by, if it was made here.
    """

    name: str
    id: str
    megabytes: float
    created: str
    recipe: str | None


def build(name: str = NAME, say: Callable[[str], None] = print) -> str:
    """Make the image from Debian's packages, unless the engine has it under this name by this recipe already.

    Args:
        say: hears of the progress, a line at a time.

    Returns:
        The image's id.

    Raises:
        EngineUnavailable: no engine answers.
        ImageMissing: it could not be made.
    """
    facts = inspected(name)
    if facts is not None and _recipe(facts["Config"].get("Labels")) == RECIPE:
        say(f"{name}: already there, {_short(facts['Id'])}")
        return str(facts["Id"])
    if shutil.which(_COMMAND[0]) is None:
        raise ImageMissing(
            f"{_COMMAND[0]}, which makes {name}, is not installed: apt-get install {_COMMAND[0]}; or name any image "
            "with Python and bash instead, such as --image python:3.12-slim where a registry can be reached"
        )
    say(f"{name}: making it from Debian's packages, a minute or two")
    image = _import(say)
    repository, _, tag = name.partition(":")
    with engine_errors(f"name the image {name}"):
        client().tag(image, repository, tag or "latest")
        size = client().inspect_image(image)["Size"]
    say(f"{name}: {size / 1e6:.0f} MB, {_short(image)}")
    return image


def resolve(name: str) -> str:
    """The id of an image, which stays the same image even if the name moves; pulled if it is not there.

    Raises:
        EngineUnavailable: no engine answers.
        ImageMissing: it is not there, and no registry gives it.
    """
    if (facts := inspected(name)) is not None:
        return str(facts["Id"])
    mend = f"manyturn images build makes {NAME}"
    if name.partition(":")[0] == NAME.partition(":")[0]:  # made here alone: what a registry has under it is foreign
        raise ImageMissing(f"the engine has no image {name}: {mend}")
    try:
        with engine_errors(f"pull {name}"):
            client().pull(name, **({} if _has_tag(name) else {"tag": "latest"}))
    except EngineUnavailable as error:
        raise ImageMissing(f"{error}; {mend} without a registry") from error
    if (facts := inspected(name)) is None:
        raise ImageMissing(f"no registry gave {name}; {mend} without one")
    return str(facts["Id"])


def images() -> list[ImageFacts]:
    """State of each named image in the engine, in their order. Raises EngineUnavailable."""
    with engine_errors("list images"):
        images = client().images()
    return sorted(
        ImageFacts(
            name.removeprefix("localhost/").removeprefix("docker.io/library/"),  # which Podman puts before it
            image["Id"],
            image["Size"] / 1e6,
            datetime.fromtimestamp(image["Created"], UTC).date().isoformat(),
            _recipe(image.get("Labels")),
        )
        for image in images
        for name in image["RepoTags"] or ()
        if name != "<none>:<none>"
    )


def inspected(name: str) -> dict[str, Any] | None:
    """Facts of the engine about an image; None if it has none of that name. Raises EngineUnavailable."""
    with engine_errors(f"look for the image {name}"):
        from docker.errors import ImageNotFound

        try:
            return client().inspect_image(name)
        except ImageNotFound:
            return None


def _recipe(labels: Mapping[str, str] | None) -> str | None:
    return (labels or {}).get(RECIPE_LABEL)


def _short(image: str) -> str:
    return image.removeprefix("sha256:")[:12]


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2] or "@" in name


def _import(say: Callable[[str], None]) -> str:
    """Pipe a root file system into the engine; it gets a name only after it proved to be complete."""
    changes, last = [*_SETTINGS, f"LABEL {RECIPE_LABEL}={RECIPE}"], deque[str](maxlen=3)
    image = refused = ""
    with subprocess.Popen(_COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as maker:
        assert maker.stdout is not None and maker.stderr is not None
        listener = threading.Thread(target=_listen, args=(maker.stderr, last, say))
        listener.start()
        try:
            with engine_errors("import the image"):
                image, refused = _imported(client().import_image_from_stream(_blocks(maker.stdout), changes=changes))
        except EngineUnavailable as error:
            refused = str(error)
        finally:
            maker.stdout.close()  # what still writes ends by that
            listener.join()
    if not maker.returncode and not refused:
        return image
    if image:
        client().remove_image(image)
    reasons = [refused] if refused else [f"{_COMMAND[0]}, which takes root and a mirror of Debian, failed"]
    raise ImageMissing(": ".join([*reasons, *(["; ".join(last)] if last else [])]))


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _listen(stream: Iterable[bytes], last: deque[str], say: Callable[[str], None]) -> None:
    """Pass on what is going on ("I: ..."), and keep the last lines in case that it fails."""
    for raw in stream:
        line = raw.decode(errors="replace").strip().rpartition("\r")[2]
        kind, _, text = line.partition(": ")
        if kind == "I":
            say(text)
        elif line:
            last.append(line)


def _imported(answer: str) -> tuple[str, str]:
    """The image's id and an error, either of them empty, from the engine's lines of JSON."""
    image = error = ""
    for line in answer.splitlines():
        event = json.loads(line)
        image = event.get("status", "") if event.get("status", "").startswith("sha256:") else image
        error = event.get("error", error)
    return image, error
