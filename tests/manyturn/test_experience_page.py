"""Code on docs/experience.md and docs/experience-files.md must run as it stands there."""

import re
import runpy
from pathlib import Path

import manyturn as mt

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("experience.md", "experience-files.md"))


def test_the_policy_the_commands_and_the_method_of_the_page_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policy, script, method = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    Path("pol.py").write_text(policy)
    for words in re.findall(r"^manyturn (\w+ pol\.py.*)$", PAGE, re.MULTILINE):
        ended = command(*words.split())
        assert ended.code == 0, ended.err
    Path("script.py").write_text(script)
    first, *_, last = runpy.run_path("script.py")["made"].rounds
    assert first.validation["validation"]["mean"] < last.validation["validation"]["mean"]
    Path("method.py").write_text(method)
    runpy.run_path("method.py")
    made = mt.improve("pol.py:Guesser", "manyturn/GuessNumber-v0", out="own", method="first_failure", rounds=1)
    assert [entry.text for entry in made.experience.entries] == ["Guess the middle first."]
