"""An environment of an installed package: what is written of it says which package to install elsewhere."""

import sys
from pathlib import Path

import gymnasium
import plugin_package
import pytest

from manyturn.envs.contract.options import plugins

SOURCE = """
import manyturn as mt

class Shades(mt.TextEnv):
    instructions = "Name the colour."
    max_turns = 1

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"n": n, "split": split}) for n in range(3)]

    def begin(self, task, rng):
        return f"colour {task.params['n']}"

    def respond(self, action):
        return self.succeed("Yes.")

    def expert(self):
        return "red"

mt.register("shades/Shades-v0", "shades_of:Shades")
"""
ENV = "shades/Shades-v0"


@pytest.fixture
def uninstall(tmp_path, monkeypatch):
    """Install the package; the result uninstalls it."""
    monkeypatch.chdir(tmp_path)
    site = plugin_package.install(tmp_path / "site", "shades_of", SOURCE)

    def remove() -> None:
        gymnasium.registry.pop(ENV, None)
        sys.modules.pop("shades_of", None)
        if str(site) in sys.path:
            sys.path.remove(str(site))
        plugins._loaded.cache_clear()

    monkeypatch.syspath_prepend(str(site))
    plugins._loaded.cache_clear()
    yield remove
    remove()


@pytest.mark.parametrize("form", ["trl", "verifiers"])
def test_an_exported_package_depends_on_the_package_that_registers_the_environment(command, uninstall, form):
    assert command("export", ENV, "--as", form, "--out", "out").code == 0
    assert '"shades_of>=1.0"' in Path("out/pyproject.toml").read_text()
    assert "shades_of>=1.0" in Path("out/README.md").read_text()


def test_a_panel_names_the_package_where_it_is_not_installed(command, uninstall):
    assert command("panel", "make", ENV).code == 0
    assert command("evaluate", "expert", "--panel", "panel.json").code == 0
    uninstall()
    for words in (("evaluate", "random", "--panel"), ("panel", "verify")):
        ended = command(*words, "panel.json")
        assert ended.code == 2 and "pip install 'shades_of>=1.0'" in ended.err and ended.err.count("\n") == 1
