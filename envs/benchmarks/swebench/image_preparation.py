"""Turns an instance's image into one that an agent may be let into.

A published image holds the whole repository below /testbed, with branches, tags and a history that may go beyond the
commit that the agent starts from: the solution among them. And a sandbox has a read-only root. So, once for each
instance, in a container without network that no agent has been in, the repository is brought to the agent's state,
everything that is not reachable from there is removed and its absence checked, and the rest is packed. /testbed becomes
a link to the workspace, where each episode unpacks it.

Not looked into: the repositories of submodules, and copies of the project elsewhere in the image.
"""

import contextlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL, engine_errors
from manyturn.containers.engine.images import resolve
from manyturn.containers.engine.user_lock import user_lock
from manyturn.containers.sandbox import WORKSPACE
from manyturn.envs.benchmarks.swebench.rows import R2EGYM, SWESMITH, DataError, Row
from manyturn.envs.contract.random_keys import digest

PACKED = "/.testbed.tar"
HIDDEN = "/.hidden"
_TAG = "manyturn-swebench"
_PYTHON_LABEL = "manyturn.python"
_ENGINE_SECONDS = 1800
_R2E_FILES = (
    "run_tests.sh r2e_tests syn_issue.json expected_test_output.json execution_result.json parsed_commit.json "
    "modified_files.json modified_entities.json"
).split()

SCRUB = r"""
set -euo pipefail
die() { echo "manyturn: $*"; exit 3; }
export HOME=/.manyturn/home GIT_CONFIG_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1 LC_ALL=C
export GIT_AUTHOR_NAME=manyturn GIT_AUTHOR_EMAIL=manyturn@localhost GIT_AUTHOR_DATE='2000-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=manyturn GIT_COMMITTER_EMAIL=manyturn@localhost GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'
mkdir -p "$HOME"
git config --global --add safe.directory '*'
git config --global core.hooksPath /dev/null
git config --global gc.auto 0
cd /testbed || die "there is no /testbed"
git rev-parse -q --verify HEAD >/dev/null || die "/testbed is no repository with a commit"
base=$(cat /.manyturn/base)
if [ -n "$base" ]; then
    base=$(git rev-parse -q --verify "$base^{commit}") || die "/testbed does not know the base commit"
    git merge-base --is-ancestor "$base" HEAD || die "/testbed does not stand on the base commit"
fi

# What the agent is not to see, and the fault that it is to find.
mkdir -p /.hidden
while IFS= read -r path; do
    [ -e "$path" ] || continue
    case "$path" in /*) to="/.hidden/${path##*/}" ;; *) to="/.hidden/$path" ;; esac
    mkdir -p "$(dirname "$to")"
    mv "$path" "$to"
done < /.manyturn/hide
[ ! -s /.manyturn/fault ] || git apply --whitespace=nowarn /.manyturn/fault || die "the fault's patch does not apply"

# One commit for the state of the image, on top of the base commit unless it is that.
git add -A
tree=$(git write-tree)
if [ -z "$base" ]; then
    head=$(git commit-tree -m 'The repository' "$tree")
elif [ "$tree" = "$(git rev-parse "$base^{tree}")" ]; then
    head=$base
else
    head=$(git commit-tree -p "$base" -m 'The state of the image' "$tree")
fi

# Nothing else stays: no branch, tag, stash, note, remote, log, hook, alternate or setting.
git symbolic-ref HEAD refs/heads/manyturn-scrub
git for-each-ref --format='delete %(refname)' | git update-ref --stdin
git update-ref refs/heads/main "$head"
git symbolic-ref HEAD refs/heads/main
git read-tree HEAD
find .git -maxdepth 1 -name '*_HEAD' -delete
rm -rf .git/logs .git/hooks .git/config .git/worktrees .git/rr-cache .git/lost-found .git/info .git/COMMIT_EDITMSG
git init -q --template=
git repack -q -a -d -f
rm -rf .git/objects/info/alternates .git/objects/info/commit-graph .git/objects/info/commit-graphs
git prune --expire=now
git pack-refs --all
rm -rf .git/logs

git cat-file --batch-all-objects --batch-check='%(objectname)' | sort -u > /.manyturn/there
git rev-list --objects HEAD | cut -d' ' -f1 | sort -u > /.manyturn/reachable
cmp -s /.manyturn/there /.manyturn/reachable || die "objects beyond the base commit could not be removed"
[ "$(git for-each-ref --format='%(refname)')" = refs/heads/main ] || die "references could not be removed"
"""

_PACK = r"""
chmod -R u+rwX,go+rX /testbed /.hidden
chmod a+rx /root && chmod -R a+rX /root/.local 2>/dev/null || true
tar -cf /.testbed.tar -C /testbed .
cd /
rm -rf /testbed
ln -s WORKSPACE /testbed
[ -n "$(cat /.manyturn/grades)" ] || rm -rf /.hidden
python=
for place in /usr/bin/python3 /usr/local/bin/python3 /opt/miniconda3/bin/python3 "$(command -v python3 || true)"; do
    [ -n "$python" ] || ! "$place" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || python=$place
done
[ -n "$python" ] || die "there is no Python 3.8 or newer"
rm -rf /.manyturn
echo "manyturn-python=$python"
"""


class Prepared(NamedTuple):
    """The images made of an instance's image.

    Attributes:
        agent: image that the agent works in.
        grader: image that patches are graded in; the hidden files are in it.
        python: for the tool server.
    """

    agent: str
    grader: str
    python: str


def prepare(row: Row, image: str) -> Prepared:
    """The images of an instance; made on the first call, and found by their names from then on.

    Args:
        image: the instance's published image, or any with its repository below /testbed.

    Raises:
        EngineUnavailable: no engine answers, it has no such image and cannot get it, or the lock is not ours.
        DataError: the image is not the row's.
    """
    hidden = _hidden(row)
    source = resolve(image)
    key = digest(source, row.commit, row.fault, hidden, SCRUB, _PACK)[:24]
    agent, python = _made(source, row, hidden, f"{_TAG}:{key}", grades=False)
    grader = _made(source, row, hidden, f"{_TAG}:{key}-grader", grades=True)[0] if hidden else agent
    return Prepared(agent, grader, python)


def _hidden(row: Row) -> list[str]:
    """Paths, relative to /testbed or absolute, of what grades and is there before the agent is."""
    if row.family == R2EGYM:
        return [*_R2E_FILES, "/r2e_tests"]
    if row.family != SWESMITH:
        return []
    files = sorted({test.partition("::")[0] for test in row.fail_to_pass})
    for file in files:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or ".git" in path.parts or not file.isprintable():
            raise DataError(f"{row.instance}: {file!r:.60} is no path below the repository: fix the row")
    return files


def _made(source: str, row: Row, hidden: Iterable[str], name: str, grades: bool) -> tuple[str, str]:
    """Name and Python of an image. One is made at a time, whatever asks for it: a group's episodes begin together."""
    import docker
    from docker.errors import ImageNotFound

    with engine_errors(f"prepare {source}"), user_lock("swebench"):
        client = docker.from_env(timeout=_ENGINE_SECONDS)  # to commit a large repository takes a while
        with contextlib.suppress(ImageNotFound):
            return name, client.images.get(name).labels[_PYTHON_LABEL]
        container = client.containers.create(
            source,
            entrypoint=["bash", "/.manyturn/prepare"],
            command=[],
            user="0:0",
            network_mode="none",
            working_dir="/",
            labels={LABEL: "1", **owner.this_process().labels},
        )
        try:
            orders = {"prepare": SCRUB + _PACK.replace("WORKSPACE", WORKSPACE), "base": row.commit, "fault": row.fault}
            orders |= {"hide": "".join(f"{path}\n" for path in hidden), "grades": "yes" if grades else ""}
            container.put_archive("/", _folder(".manyturn", orders))
            container.start()
            status = container.wait()["StatusCode"]
            log = container.logs(tail=20).decode(errors="replace").strip().splitlines()
            python = next((line.partition("=")[2] for line in log if line.startswith("manyturn-python=")), "")
            if status or not python:
                raise DataError(
                    f"{row.instance}: its image cannot be prepared ({_last(log)}): give the row's own image"
                )
            container.commit(*name.split(":"), changes="\n".join(_settings(client.images.get(source).attrs, python)))
        finally:
            container.remove(force=True, v=True)
    return name, python


def _settings(attributes: Mapping[str, Any], python: str) -> list[str]:
    """Dockerfile's instructions: commands find the instance's own Python first."""
    variables = dict(entry.partition("=")[::2] for entry in attributes["Config"].get("Env") or ())
    path = variables.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    own = "/testbed/.venv/bin:/opt/miniconda3/envs/testbed/bin"
    return [f"ENV PATH={own}:{path}", f"LABEL {_PYTHON_LABEL}={python}", "WORKDIR /", 'ENTRYPOINT ["bash"]', "CMD []"]


def _folder(name: str, files: Mapping[str, str]) -> bytes:
    """A tar of a folder of text files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}/{file}")
            content = text.encode()
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def _last(lines: list[str]) -> str:
    messages = [line.removeprefix("manyturn: ") for line in lines if line.startswith("manyturn: ")]
    return f"{(messages or lines or ['it says nothing'])[-1]:.200}"
