"""The worked example of CONTRIBUTING does what it says."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from manyturn.envs.contract.options import plugins, registry
from manyturn.trainers.recipe.config import configure

ROOT = Path(__file__).parents[2]


def test_the_registry_shows_the_same_example():
    shown = registry.__doc__.partition("::\n")[2].partition("\n\nA function")[0]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    example = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert lines[0].startswith("class CentredConfig") and [line for line in lines if line not in example] == []


def test_a_new_advantage_is_one_file(tmp_path):
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "centred.py").write_text(block)
    use = (
        "import centred\n"
        "from manyturn.trainers.credit.pipeline import CreditConfig, credit\n"
        "from manyturn.trainers.credit.batch.turn_batch import TurnBatch\n"
        "batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=['a', 'a'])\n"
        "print(credit(batch, CreditConfig(advantage='centred')).advantage_K.tolist())\n"
    )
    found = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[0.5, 0.5, -0.5, -0.5]", found.stderr


def test_every_registry_has_a_row_that_leads_to_it():
    rows = re.findall(
        r"^\| ([a-z ]+) \| `([a-z.]+)` \| `([A-Z]+)`, `([a-z_/]+\.py)` \| `\((.*)config\)` \|",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    run = configure({"env": {"id": "manyturn/Maze-v0"}, "judge": {"verdicts": "episode"}})
    for kind, option, name, file, _ in rows:
        module = importlib.import_module("manyturn." + file.removesuffix(".py").replace("/", "."))
        registry = getattr(module, name)
        assert registry.kind == kind and registry.names(), name
        value = run
        for part in option.split("."):
            value = getattr(value, part)
    made = r"^([A-Z]+)(?:: .*)? = Registry\("
    sources = [path for top in ("envs", "agents", "trainers", "manyturn") for path in (ROOT / top).rglob("*.py")]
    there = {name for path in sources for name in re.findall(made, path.read_text(encoding="utf-8"), re.MULTILINE)}
    own_pages = {"METHODS", "RETRIEVALS", "SEARCHES", "VALUES"}  # of improvements and searches, which no recipe names
    assert there == own_pages | {name for _, _, name, _, _ in rows}


def test_a_plugin_is_announced_as_the_page_says():
    [block] = re.findall(r"```toml\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    assert list(tomllib.loads(block)["project"]["entry-points"]) == [plugins.PLUGINS]
