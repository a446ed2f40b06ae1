"""docs/migration.md promises an option that does not exist, an environment that is refused, or no run at all."""

import re
import shlex
from pathlib import Path

import pytest

from manyturn.api.training import configured
from manyturn.envs.contract.options.options import Options
from manyturn.terminal.overrides import parse_words
from manyturn.trainers.recipe.config import RunConfig, parse_config

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
GIVEN = {
    "env": {"id": "x"},
    "credit": {"rewards": [{"name": "invalid_penalty"}], "advantage": {"name": "gigpo"}},
    "agent": {"context": {"name": "window"}},
    "objective": {"kl": {"coef": 0.01}, "entropy": {"coef": 0.001}},
}


def test_every_option_of_the_tables_exists():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    ours = " ".join(row.split(" | ", 1)[1] for row in rows)
    sections = "|".join(RunConfig.model_fields)
    places = set(re.findall(rf"`((?:{sections})(?:\.[a-z_]+)*)[` ]", ours))
    assert len(places) > 25
    for place in places - {"env.args.max_turns"}:
        found: object = parse_config(GIVEN)
        for name in place.split("."):
            assert isinstance(found, Options) and name in type(found).model_fields, f"{place} is no option"
            found = getattr(found, name)


def configuration(command: str) -> RunConfig:
    words, options = parse_words(shlex.split(command)[2:])
    given = {name: value for name in ("recipe", "out") if (value := options.pop(name, None)) is not None}
    return configured([given["recipe"]], options, *words)


def test_the_commands_that_train_mean_a_run():
    lines = [line for line in PAGE.replace("\\\n", "").splitlines() if line.startswith("manyturn train ")]
    theirs, toy = map(configuration, lines)
    for config in (theirs, toy):
        assert config.credit.advantage.stats_over == "rows" and config.credit.advantage.singleton == "raw"
        assert config.agent.context.name == "window" and config.agent.format.name == "tagged"
    assert theirs.env.args == {"games": "GAMES", "max_turns": 50} and theirs.evaluation.split == "validation"
    assert [config.credit.rewards[0].coef for config in (theirs, toy)] == [0.01, 0.01]


@pytest.mark.slow
def test_the_ported_environment_keeps_the_contract(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "ported.py").write_text(block)
    lines = re.findall(r"^manyturn ((?:check|evaluate random) .*)$", PAGE, re.MULTILINE)
    for line in lines:
        ended = command(*line.split())
        assert ended.code == 0, ended.out + ended.err
    assert len(lines) == 2
