"""A package that ``manyturn export --as skyrl`` wrote, where the tests of skyrl-gym and of SkyRL find it."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manyturn.export.exported_env import Exported


class Package:
    """An environment exported by the command line, and installed by pip where this process finds it."""

    def __init__(self, command: Any, monkeypatch: pytest.MonkeyPatch, env: str, folder: Path, *words: str):
        ended = command("export", env, "--as", "skyrl", "--out", folder / "package", "--limit", 3, *words)
        assert ended.code == 0, ended.err
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", folder / "site", folder / "package"], check=True)
        [package] = (folder / "site").glob("manyturn_*[!o]/")
        monkeypatch.syspath_prepend(str(folder / "site"))
        importlib.import_module(package.name)
        self.world = Exported.read(package)
        lines = (folder / "package" / "data" / "test.jsonl").read_text().splitlines()
        self.rows = [json.loads(line) for line in lines]

    def made(self, row: dict[str, Any], **changes: Any) -> Any:
        """The environment as SkyRL's generator makes it of a row."""
        import skyrl_gym

        extras = {key: value for key, value in row.items() if key not in ("prompt", "env_class")} | changes
        return skyrl_gym.make(row["env_class"], env_config={}, extras=extras)
