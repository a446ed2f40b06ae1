"""The worked example of CONTRIBUTING does what it says."""

import re
import subprocess
import sys
from pathlib import Path

from manyturn.envs.contract import registry

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
        "from manyturn.trainers.credit.turn_batch import TurnBatch\n"
        "batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=['a', 'a'])\n"
        "print(credit(batch, CreditConfig(advantage='centred')).advantage_K.tolist())\n"
    )
    found = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[0.5, 0.5, -0.5, -0.5]", found.stderr
