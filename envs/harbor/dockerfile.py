"""``environment/Dockerfile``, as far as it names an image and lays files into the folder that the agent works in.

Nothing is built: what a build would run has to be in an image already.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from manyturn.containers.inside.archive import ArchivedPath
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.harbor.folder import Files

_WITHOUT_EFFECT = frozenset({"CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL"})
_LINE = re.compile(r"(?:[^\\\n]|\\(?!\s*\n)|\\\s*\n)+")


class Laid(NamedTuple):
    """Result of a Dockerfile.

    Attributes:
        image: that it begins from.
        workdir: absolute; "" if it says none.
        environ: variables of every command.
        files: by their paths in the image.
    """

    image: str
    workdir: str
    environ: Mapping[str, str]
    files: Files


def laid(text: str, context: Files) -> Laid:
    """Read a Dockerfile. Raises NeedsSetup for an instruction that would have to be built.

    Args:
        context: the files of ``environment/``.
    """
    image, workdir, environ, files = "", "", dict[str, str](), dict[str, ArchivedPath]()
    for word, rest in _instructions(text):
        if word in _WITHOUT_EFFECT:
            continue
        if "$" in rest or "<<" in rest:
            raise _refusal(word, rest, "variables and here-documents are not read")
        if word == "FROM" and not image:
            image = rest
            if len(rest.split()) != 1:
                raise _refusal(word, rest, "name one image and nothing else")
        elif word == "WORKDIR":
            workdir = posixpath.normpath(posixpath.join(workdir or "/", rest.strip("\"'")))
        elif word == "ENV":
            environ |= _variables(rest)
        elif word == "COPY":
            files |= _copied(rest, workdir or "/", context, files)
        else:
            raise _refusal(word, rest, "nothing is built here")
    if not image:
        raise NeedsSetup("environment/Dockerfile begins from no image")
    return Laid(image, workdir, environ, files)


def _refusal(word: str, rest: str, why: str) -> NeedsSetup:
    return NeedsSetup(
        f"environment/Dockerfile: {word} {rest:.60}: {why}. Build the image yourself, and name it by --env.args.image"
    )


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    lines_of = (re.sub(r"\\[ \t]*\n", "", line).strip() for line in _LINE.findall(lines))
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines_of) if word]


def _variables(rest: str) -> dict[str, str]:
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise _refusal("ENV", rest, str(error).lower()) from None
    if words and "=" not in words[0]:  # the old form, of one variable
        return {words[0]: rest.partition(" ")[2].strip()}
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _copied(rest: str, workdir: str, context: Files, before: Files) -> dict[str, ArchivedPath]:
    """Files of one COPY, by paths in the image."""
    try:
        words = json.loads(rest) if rest.startswith("[") else rest.split()
    except ValueError:
        raise _refusal("COPY", rest, "this is no list of JSON") from None
    *sources, goal = words if len(words) > 1 and all(isinstance(word, str) for word in words) else ["", ""]
    if not sources or any(source.startswith("--") or set(source) & set("*?[") for source in sources):
        raise _refusal("COPY", rest, "options and patterns are not read")
    target = posixpath.normpath(posixpath.join(workdir, goal))
    is_folder = goal.endswith(("/", ".")) or len(sources) > 1 or target == workdir
    is_folder = is_folder or any(path.startswith(f"{target}/") for path in before)
    paths = dict[str, ArchivedPath]()
    for source in sources:
        name = posixpath.normpath(source.lstrip("/") or ".")
        if name in context:
            path = posixpath.join(target, posixpath.basename(name)) if is_folder else target
            paths[path] = context[name]
            continue
        start = "" if name == "." else f"{name}/"
        inner = {
            posixpath.join(target, path[len(start) :]): context[path] for path in context if path.startswith(start)
        }
        if not inner:
            raise NeedsSetup(f"environment/Dockerfile: COPY {rest:.60}: there is no file environment/{name}")
        paths |= inner
    return paths
