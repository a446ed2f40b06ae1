"""Files of a plugin package around an environment: project, module, test, README."""

from pathlib import Path

_PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "DASHED"
version = "0.1.0"
description = "The environment ID for manyturn"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["manyturn"]

[project.entry-points."manyturn.plugins"]
NAME = "NAME:register"

[tool.setuptools]
packages = ["NAME"]
"""
_MODULE = '''\
"""The environment ID for manyturn."""

import manyturn as mt


def register():
    """Announce the environment; its module is imported when one is made."""
    mt.register("ID", "NAME.world:CLASS")
'''
_TEST = '''\
"""The installed package keeps the contract that training and evaluation rely on."""

import manyturn as mt


def test_ID_WORDS_keeps_the_contract():
    report = mt.check("ID")
    assert report.passed, report
'''
_README = """\
# DASHED

The environment `ID` for manyturn. Its class is in `NAME/world.py`. First install manyturn from its clone, with
`pip install .` in the clone's folder.

```sh
pip install .                            # or: pip install -e . while you change it
manyturn check ID
manyturn play ID
manyturn train ID --steps 10
python -m pytest tests                   # needs pytest
```

Before others use it: say in this file what the agent does and how it is rewarded, add a license, and raise the version
with each change of tasks or rewards, for results name it. `python -m build` makes the files that `twine upload dist/*`
puts on an index, and `manyturn export ID --as verifiers --out exported` makes a package for another project.
"""


def plugin_files(name: str, cls: str, env: str) -> dict[Path, str]:
    """Path in the package's folder -> text of the file.

    Args:
        name: of the module.
        cls: the environment's class.
        env: text of its file.
    """
    words = {"DASHED": name.replace("_", "-"), "ID_WORDS": name, "ID": env_id(name, cls), "NAME": name, "CLASS": cls}

    def filled(text: str) -> str:
        for mark, word in words.items():
            text = text.replace(mark, word)
        return text

    return {
        Path("pyproject.toml"): filled(_PROJECT),
        Path("README.md"): filled(_README),
        Path(name) / "__init__.py": filled(_MODULE),
        Path(name) / "world.py": env,
        Path("tests") / f"test_{name}.py": filled(_TEST),
    }


def env_id(name: str, cls: str) -> str:
    """The id under which a plugin package registers its environment.

    >>> env_id("my_world", "MyWorld")
    'my_world/MyWorld-v0'
    """
    return f"{name}/{cls}-v0"
