"""What docs/evaluation.md shows must run as it stands there."""

import re
import runpy
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_policies_and_the_script_of_the_page_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policies = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "pol.py").write_text("\n".join(policies[:2]))
    [words] = re.findall(r"^manyturn (evaluate pol\.py:first .*)$", PAGE, re.MULTILINE)
    assert command(*words.split()).code == 0
    ended = command("evaluate", "pol.py:Explorer", "--env", "manyturn/Maze-v0", "--limit", 4)
    assert ended.code == 0, ended.err
    (tmp_path / "script.py").write_text("\n".join(policies))
    result = runpy.run_path(str(tmp_path / "script.py"))["result"]
    assert result.summary["n_episodes"] == 20
