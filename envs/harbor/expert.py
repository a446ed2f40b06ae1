"""The command by which a task's own solution is put in, as an agent could have written it."""

import base64
import re
import shlex
from collections.abc import Mapping

from manyturn.envs.harbor.folder import Files
from manyturn.envs.harbor.image import SOLUTION

_OTHER = re.compile(r"\A#!(?!.*\b(?:ba)?sh\b)|\$0|BASH_SOURCE|/solution\b")
_END = "END-OF-FILE"


def solving(files: Files, environ: Mapping[str, str]) -> str:
    """A script that does what ``solution/solve.sh`` does; with the files next to it, where it needs them.

    >>> from manyturn.containers.inside.archive import ArchivedPath
    >>> solving({"solve.sh": ArchivedPath("solve.sh", "file", b"echo hi > a.txt")}, {"A": "b c"})
    "export A='b c'\\necho hi > a.txt"
    """
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environ.items()]
    text = _text(files["solve.sh"].content)
    if len(files) == 1 and text is not None and not _OTHER.search(text):
        return "\n".join([*exports, text.strip()])
    for path, file in files.items():
        place = shlex.quote(f"{SOLUTION}/{path}")
        exports.append(f"mkdir -p {shlex.quote(f'{SOLUTION}/{path}'.rpartition('/')[0])}")
        inner = _text(file.content)
        if inner is not None and inner.endswith("\n") and _END not in inner:
            exports.append(f"cat > {place} <<'{_END}'\n{inner}{_END}")
        else:
            exports.append(f"base64 -d > {place} <<'{_END}'\n{base64.encodebytes(file.content).decode()}{_END}")
        if file.executable or path == "solve.sh":
            exports.append(f"chmod +x {place}")
    return "\n".join([*exports, "/solution/solve.sh"])


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
