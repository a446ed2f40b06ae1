"""The image that a task is played in, made of one that the engine has.

A sandbox can write in three folders only. So the folder that the agent works in becomes a link to the workspace, and
``/tests``, ``/solution`` and ``/logs`` become links to places that are emptied before the agent, and before a verifier.
What was in the working folder is read from the image and laid into the workspace of each episode.
"""

import io
import posixpath
import tarfile
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL, client, engine_errors
from manyturn.containers.engine.images import inspected
from manyturn.containers.engine.user_lock import user_lock
from manyturn.containers.inside.archive import FILE, FOLDER, LINK, ArchivedPath
from manyturn.containers.sandbox import EngineUnavailable
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup

TESTS, SOLUTION, LOGS = "/tmp/tests", "/tmp/solution", "/tmp/logs"
_TAG, _PYTHON_LABEL = "manyturn-harbor", "manyturn.python"
_MOST = 1 << 30
_SECONDS = 600
_SYSTEM = "bin boot dev etc lib lib32 lib64 proc run sbin sys tests solution logs tmp".split()
_SHARED = "usr usr/src usr/bin usr/lib usr/local usr/local/bin usr/local/lib var var/lib var/www home opt srv".split()

_SCRIPT = r"""
set -eu
die() { echo "manyturn: $*"; exit 3; }
for place in tests solution; do
    [ ! -e "/$place" ] || rmdir "/$place" 2>/dev/null || die "it has files in /$place, which an agent would see"
done
rm -rf /logs
for place in tests solution logs; do ln -s "/tmp/$place" "/$place"; done
mkdir -p /workspace
if [ "$1" != /workspace ]; then
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    ln -s /workspace "$1"
fi
for place in python3 /usr/bin/python3 /usr/local/bin/python3; do
    if python=$(command -v "$place") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))'; then
        echo "manyturn-python=$python"
        exit 0
    fi
done
die "it has no Python 3.8 or newer, which the sandbox's own server needs"
"""


class Ground(NamedTuple):
    """Image of a task's episodes.

    Attributes:
        image: with the links.
        python: for the tool server.
        workdir: the agent's folder, which leads to the workspace.
        files: of that folder.
    """

    image: str
    python: str
    workdir: str
    files: tuple[ArchivedPath, ...]


def ground(source: str, workdir: str) -> Ground:
    """Image of a task's episodes, prepared from another; made on the first call and looked up by its name later.

    Args:
        source: an image that the engine has: none is fetched.
        workdir: absolute; "" for what the image itself says.

    Raises:
        NeedsSetup: there is no such image, or it cannot be played in.
        EngineUnavailable: no engine answers.
    """
    facts = inspected(source)
    if facts is None:
        raise NeedsSetup(f"the engine has no image {source}, and none is fetched: pull or build it yourself")
    workdir = posixpath.normpath(workdir or facts["Config"].get("WorkingDir") or "/")
    parts = workdir.strip("/").split("/")
    if not workdir.startswith("/") or parts[0] in ("", *_SYSTEM) or "/".join(parts) in _SHARED or ".." in parts:
        raise NeedsSetup(
            f"{source} is worked on in {workdir}, and a sandbox needs a folder of the agent's own: say WORKDIR"
        )
    name = f"{_TAG}:{digest(facts['Id'], workdir, _SCRIPT)[:24]}"
    with engine_errors(f"prepare {source}"), user_lock("harbor"):
        made = inspected(name)
        container = client().create_container(
            facts["Id"],
            entrypoint=["bash", "-c", _SCRIPT, "manyturn", workdir],
            command=[],
            user="0:0",
            working_dir="/",
            labels={LABEL: "1", **owner.this_process().labels},
            healthcheck={"test": ["NONE"]},
            host_config=client().create_host_config(network_mode="none", security_opt=["no-new-privileges"]),
        )["Id"]
        try:
            files = tuple(_files_of(container, workdir))
            python = made["Config"]["Labels"][_PYTHON_LABEL] if made else _made(container, name, source)
        finally:
            client().remove_container(container, force=True, v=True)
    return Ground(name, python, workdir, files)


def _made(container: str, name: str, source: str) -> str:
    """Run the script and keep what it made. Returns the Python that it found."""
    client().start(container)
    status = client().wait(container, timeout=_SECONDS)["StatusCode"]
    log = client().logs(container, tail=20).decode(errors="replace").strip().splitlines()
    python = next((line.partition("=")[2] for line in log if line.startswith("manyturn-python=")), "")
    if status or not python:
        last = (log or ["it says nothing"])[-1].removeprefix("manyturn: ")
        raise NeedsSetup(f"{source} cannot be played in: {last:.200}")
    repository, _, tag = name.partition(":")
    changes = [f"LABEL {_PYTHON_LABEL}={python}", "WORKDIR /", "ENTRYPOINT []", 'CMD ["bash"]']
    client().commit(container, repository, tag, changes=changes)
    return python


def _files_of(container: str, workdir: str) -> Iterable[ArchivedPath]:
    """Files of an image in a folder; devices are left out."""
    from docker.errors import NotFound

    try:
        chunks, _ = client().get_archive(container, workdir)
    except NotFound:
        return
    archive, size = io.BytesIO(), 0
    for chunk in chunks:
        size += archive.write(chunk)
        if size > _MOST:
            raise EngineUnavailable(f"{workdir} of the image holds more than {_MOST >> 20} MiB")
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        for member in tar:
            path = posixpath.normpath(member.name).partition("/")[2]
            if path:
                yield from _entry(tar, member, path)


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> Iterable[ArchivedPath]:
    if member.isdir():
        yield ArchivedPath(path, FOLDER)
    elif member.issym():
        yield ArchivedPath(path, LINK, member.linkname.encode("utf-8", "surrogateescape"))
    elif (content := tar.extractfile(member)) is not None:  # a file, or another name of one
        yield ArchivedPath(path, FILE, content.read(), bool(member.mode & 0o100))


def laid_over(workspace: Iterable[ArchivedPath], files: Mapping[str, ArchivedPath]) -> list[ArchivedPath]:
    """Files of a workspace, with others laid over them."""
    return [*({entry.path: entry for entry in workspace} | dict(files)).values()]
