"""What is written of an environment must be complete, in one order, and reach cards and pages as it stands."""

import json
import textwrap

import pytest
from gymnasium.envs.registration import load_env_creator

from manyturn.cli.app import app
from manyturn.cli.pages.env_cards import card
from manyturn.cli.pages.env_pages import SECTIONS, arguments, described, page
from manyturn.envs.contract.registration.env_registry import UnknownEnv, env_ids, spec_of

IDS = [name for name in env_ids() if name.startswith("manyturn/")]  # tests register others


def class_of(name):
    return load_env_creator(spec_of(name).entry_point)


@pytest.mark.parametrize("name", IDS)
def test_every_environment_says_all_that_a_reader_needs_in_one_order(name):
    found = described(class_of(name))
    before_args = [title for title in found.sections if title not in ("Args", "Raises")]
    assert before_args == list(SECTIONS) and found.about.endswith(".")
    assert all(len(text) >= 5 for text in found.sections.values())
    assert list(found.sections)[len(SECTIONS)] == "Args"


@pytest.mark.parametrize("name", IDS)
def test_every_argument_of_an_environment_is_explained(name):
    unexplained = [one.name for one in arguments(class_of(name)) if not one.about]
    assert not unexplained, "add them to Args, there or in the base"


def test_an_explanation_is_taken_from_the_base_that_a_class_refers_to():
    found = {one.name: one for one in arguments(class_of("manyturn/Talk-Tutor-v0"))}
    assert found["difficulty"].about.startswith("easy (3 skills")
    assert "default: the first of ``makers``" in found["user"].about, "a colon in a text begins no argument"
    assert found["rewards"].default == "'outcome'" and "``turns``" in found["rewards"].about


def test_a_page_shows_sections_arguments_and_levels_and_its_code_is_not_changed(capsys):
    app(["envs", "manyturn/Maze-v0", "--markdown"], result_action="return_value")
    text = capsys.readouterr().out
    assert text == page("manyturn/Maze-v0")
    assert text.startswith("# manyturn/Maze-v0\n\nFind the key")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == [*SECTIONS, "Arguments", "Levels", "Measure it"]
    assert "| `medium` | 6 | 20 |" in text and "`progress` is the share" in text
    assert '```python\nimport manyturn as mt\n\nenv = mt.make("manyturn/Maze-v0")\n```' in text
    assert "````" not in text and " ``" not in text


def test_pages_of_all_environments_need_no_setup(capsys):
    app(["envs", "--markdown"], result_action="return_value")
    text = capsys.readouterr().out
    assert [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# manyturn/")] == IDS
    assert "| `products` |  | how many a shop has" in text and "NeedsSetup: there are no rows" in text


def test_ids_are_listed_so_that_they_can_be_copied(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    app(["envs"], result_action="return_value")
    listed = capsys.readouterr().out
    assert [name for name in IDS if name not in listed] == []


def test_what_has_no_page_says_why(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import sys\nsys.exit('it ran')\n", encoding="utf-8")
    with pytest.raises(UnknownEnv, match="a page needs an id"):
        page(f"{file}:Mine")
    with pytest.raises(ValueError, match="leave out --long"):
        app(["envs", "manyturn/Maze-v0", "--markdown", "--long"], exit_on_error=False, result_action="return_value")


def test_a_card_holds_the_sections_and_a_class_without_them_has_none(tmp_path, capsys):
    file = tmp_path / "plain.py"
    source = '''
        import manyturn as mt

        class Plain(mt.TextEnv):
            """Says go.

            Reward:
                1 for ``go``,
                and nothing else.
            """
            def tasks(self, split):
                return [mt.Task(f"{split}/0", split, {"split": split})]
            def begin(self, task, rng):
                return "Say go."
            def respond(self, action):
                return self.succeed("Gone.") if action == "go" else self.go_on("Say go.")
            def admissible(self):
                return ["go"]
    '''
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    assert card(f"{file}:Plain", samples=1).sections == {"Reward": "1 for ``go``, and nothing else."}
    app(["envs", "manyturn/GuessNumber-v0", "--samples", "2"], result_action="return_value")
    shown = capsys.readouterr().out
    assert "\nExpert: Halves what is left.\n" in shown
    app(["envs", "manyturn/GuessNumber-v0", "--samples", "2", "--json"], result_action="return_value")
    assert list(json.loads(capsys.readouterr().out)[0]["sections"]) == list(SECTIONS)
