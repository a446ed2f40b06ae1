"""Start of the tool server in a container: an interpreter reads its modules from its input.

So a stock image with some Python and bash will do: nothing is installed, mounted or written.
"""

import json
from importlib import import_module
from pathlib import Path

# In the order in which they import each other.
_MODULES = ("wire", "archive", "privilege_drop", "files", "landlock", "commands", "container_limits", "server")

_PROGRAM = """\
import json, os, sys, types
def take(count):
    data = b""
    while len(data) < count:
        chunk = os.read(0, count - len(data))
        if not chunk: os._exit(0)
        data += chunk
    return data
package = sys.modules["manyturn.containers.inside"] = types.ModuleType("manyturn.containers.inside")
for name, text in json.loads(take(int(take(8)))):
    module = sys.modules[package.__name__ + "." + name] = types.ModuleType(package.__name__ + "." + name)
    setattr(package, name, module)
    exec(compile(text, name + ".py", "exec"), module.__dict__)
module.main()
"""


def command(python: str) -> list[str]:
    """The container's command, for an interpreter's name or path."""
    return [python, "-I", "-S", "-B", "-c", _PROGRAM]


def payload() -> bytes:
    """Input of the command before its first frame."""
    sources = [(name, _source(name)) for name in _MODULES]
    text = json.dumps(sources).encode()
    return b"%08d" % len(text) + text


def _source(name: str) -> str:
    file = import_module(f"manyturn.containers.inside.{name}").__file__
    assert file is not None
    return Path(file).read_text(encoding="utf-8")
