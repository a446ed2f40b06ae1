"""What is sent into a container needs nothing there but an old Python."""

import ast
import json
import sys

from manyturn.containers.docker.bootstrap import command, payload


def _sources() -> dict[str, str]:
    sent = payload()
    assert len(sent) == 8 + int(sent[:8])
    return dict(json.loads(sent[8:]))


def test_the_server_is_python_3_8_and_imports_the_standard_library_only() -> None:
    known = set[str]()
    for name, source in _sources().items():
        tree = ast.parse(source, feature_version=(3, 8))
        assert "from __future__ import annotations" in source
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = str(node.module)
                ours = module.removeprefix("manyturn.containers.inside")
                wanted = [ours.lstrip(".")] if ours.lstrip(".") else [alias.name for alias in node.names]
                assert module.split(".")[0] in sys.stdlib_module_names or set(wanted) <= known, (name, module)
        known.add(name)


def test_no_argument_of_the_command_grows_with_the_server() -> None:
    assert max(map(len, command("python3"))) < 2000 < len(payload())
