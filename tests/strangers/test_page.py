"""docs/tools.md and docs/roles.md: pages whose examples do not run, or are not what new-env writes, mislead at once."""

import re
import tomllib
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.cli.new_env import new_env
from manyturn.envs import tools
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.trainers.recipe.config import configure

TOOLS, ROLES = ((Path(__file__).parents[2] / "docs" / name).read_text("utf-8") for name in ("tools.md", "roles.md"))
WRITTEN = r"`manyturn new-env (\w+) --kind (\w+)` writes `\w+.py`:\n\n```python\n(.*?)```"
BLOCKS = re.findall(WRITTEN, TOOLS + ROLES, re.DOTALL)


@pytest.mark.parametrize(("name", "kind", "block"), BLOCKS, ids=[kind for _, kind, _ in BLOCKS])
def test_the_page_shows_what_new_env_writes(tmp_path, name, kind, block):
    new_env(name, tmp_path, kind)
    assert (tmp_path / f"{name}.py").read_text(encoding="utf-8") == block


def test_the_pages_show_both_kinds():
    assert [kind for _, kind, _ in BLOCKS] == ["tools", "roles"]


def test_every_name_of_the_page_is_exported():
    rows = re.findall(r"^\| (`.*?) \|", TOOLS, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert set(tools.__all__) - {"Call"} == named
    assert all(getattr(tools, name).__doc__ for name in tools.__all__) and mt.Toolset is tools.Toolset


def test_the_recipe_of_the_page_gives_each_role_its_policy(tmp_path, monkeypatch):
    new_env("name_it", tmp_path, "roles")
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"```toml\n(.*?)```", ROLES, re.DOTALL)
    config = configure(tomllib.loads(block))
    handle = EnvHandle(config.env.id)
    assert set(config.roles) == set(handle.roles) and config.refuse(config, None) is None
