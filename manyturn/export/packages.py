"""Packages in the form of other projects: the texts of their files, by project."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import manyturn
from manyturn.envs.contract.registration.env_registry import package_of_env
from manyturn.envs.contract.tasks.panel import Panel
from manyturn.export.task_dataset import panel_table


class Package(NamedTuple):
    """Package layout of another project.

    Attributes:
        host: the project's name.
        needs: what the package depends on, besides manyturn.
        module, readme: texts of files, with names in braces.
    """

    host: str
    needs: str
    module: str
    readme: str


_PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{dashed}"
version = "0.1.0"
description = "{env} of manyturn as an environment of {host}"
requires-python = ">=3.11"
dependencies = [{needs}]

[tool.setuptools]
packages = ["{package}"]

[tool.setuptools.package-data]
{package} = ["*.json"]
"""
_README = """\
# {dashed}

`{env}` of manyturn {version} as an environment of {host}. Install manyturn first{plugin}, then this folder:

```sh
pip install .{then}
```

{table}

A task that is another one in the installed manyturn is refused."""
PACKAGES = {
    "verifiers": Package(
        "verifiers",
        "verifiers>=0.4",
        '''\
"""{env} for verifiers, as manyturn export wrote it; tasks and hashes are in the files next to it."""

from pathlib import Path

from manyturn.integrations.verifiers import EpisodeEnv, PanelTaskset, TalkHarness


class {name}Taskset(PanelTaskset):
    folder = Path(__file__).parent


__all__ = ["EpisodeEnv", "{name}Taskset", "TalkHarness"]
''',
        _README.replace(
            "{then}",
            "\nvf-eval {dashed} -n 20 --env.taskset.split test --no-push -m MODEL --client.base-url URL "
            "--client.api-key-var NAME",
        )
        + """ Each reward part is a reward of verifiers. The rewards
of the turns are in `trace.info["manyturn"]["turns"]`.
""",
    ),
    "skyrl": Package(
        "SkyRL",
        "skyrl-gym>=0.4",
        '''\
"""{env} for SkyRL, as manyturn export wrote it; tasks and hashes are in the files next to it."""

from pathlib import Path

from skyrl_gym import register

from manyturn.integrations.skyrl import ExportedEnv


class {name}Env(ExportedEnv):
    folder = Path(__file__).parent


register(id="{dashed}", entry_point="{package}:{name}Env")
''',
        _README.replace("{then}", "")
        + """

Import the package where SkyRL's entry point runs, before the trainer is made, so that `{dashed}` is registered:

```python
import {package}  # registers {dashed}
```

Then `data.train_data=\'["data/train.jsonl"]\'`, `data.val_data=\'["data/validation.jsonl"]\'`,
`environment.env_class={dashed}` and `generator.max_turns` as many as an episode may take.
""",
    ),
    "trl": Package(
        "TRL",
        "trl>=1.16",
        '''\
"""{env} for TRL, as manyturn export wrote it; tasks and hashes are in the files next to it."""

from pathlib import Path

from manyturn.integrations.trl_environment import ToolEnvironment


class {name}Environment(ToolEnvironment):
    folder = Path(__file__).parent
''',
        _README.replace("{then}", "")
        + """ The model needs a chat template with tools.

```python
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from {package} import {name}Environment

trainer = GRPOTrainer(
    model="MODEL",
    environment_factory={name}Environment,
    train_dataset=load_dataset("json", data_files="data/train.jsonl", split="train"),
    args=GRPOConfig("out", max_completion_length=4096),  # of the whole episode
)
trainer.train()
```
""",
    ),
}


def dashed(package: str) -> str:
    """A package's name as pip and registries have it."""
    return package.replace("_", "-")


def write_package(kind: Package, out: Path, package: str, name: str, env: str, panels: Mapping[str, Panel]) -> None:
    """Write the files that make a package of a folder, which has the folder of its code already.

    Args:
        package: name of the folder with the code.
        name: beginning of the names of classes.
        env: the environment's name, which is safe to stand in code.
    """
    needs = [f"manyturn>={manyturn.__version__}", *filter(None, [package_of_env(env)]), kind.needs]
    words = {"env": env, "version": manyturn.__version__, "host": kind.host, "needs": ", ".join(map(json.dumps, needs))}
    words["plugin"] = "".join(f", `{need}`" for need in needs[1:-1])
    words |= {"package": package, "dashed": dashed(package), "name": name, "table": panel_table(panels)}
    files = {
        out / package / "__init__.py": kind.module,
        out / "pyproject.toml": _PROJECT,
        out / "README.md": kind.readme,
    }
    for path, text in files.items():
        path.write_text(text.format(**words), encoding="utf-8")
