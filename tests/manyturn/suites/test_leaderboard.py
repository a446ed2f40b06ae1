"""A page of results that says something else than the files that it is made of, and a suite that is not v1 any more."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from manyturn.suites import FOLDER, find_suite, names

ROOT = Path(__file__).parents[3]
V1 = "789e9de7b227df5b23b893dd64ce7ca0"
LATER = {  # suite -> the one that it extends, hash
    "v2": ("v1", "9049a33b37b04b2e696e499c07365df5"),
    "v3": ("v2", "3f571ac77300e22c8177e00d66b03989"),
}
# One panel for each environment: the slow test has all.
FAMILIES = (
    *("number-easy", "maze-easy", "household-tiny", "shop-tiny", "desk-tiny", "search-easy", "booking-tiny"),
    *(
        "bargain-easy",
        "questions-easy",
        "city-easy",
        "support-easy",
        "tutor-easy",
        "function",
        "pages",
        "miniwob",
        "bfcl",
    ),
)


def test_the_page_of_results_is_what_the_files_say(command):
    for name in names():
        page = ROOT / "docs" / f"suite-{name}.md"
        found = command("suite", "page", name)
        assert found.code == 0, found.err
        assert page.read_text(encoding="utf-8") == found.out, f"make it again: manyturn suite page {name} > {page}"


def test_v1_is_what_was_frozen_and_its_environments_are_too(command):
    """Results rest on it: whoever changes a task, a rule or a word of v1's environments freezes another suite."""
    suite, _ = find_suite("v1")
    assert suite.hash == V1 and len(suite.core) == 37
    found = command("suite", "verify", "v1", *(word for name in FAMILIES for word in ("--only", name)))
    assert found.code == 0, found.err


@pytest.mark.slow
def test_all_panels_of_v1_are_what_was_frozen(command, engine):
    found = command("suite", "verify", "v1", "--require", "engine")
    assert found.code == 0, found.err


@pytest.mark.parametrize("name", LATER)
def test_a_later_suite_has_the_panels_of_the_one_before_and_its_own_are_what_was_frozen(name, command):
    suite, (before, frozen) = find_suite(name)[0], LATER[name]
    own = suite.panels[len(find_suite(before)[0].panels) :]
    assert suite.hash == frozen and suite.panels[: -len(own)] == find_suite(before)[0].panels
    assert {one.panel.split for one in own} == {"test", "test_unseen"} and not any(one.need for one in own)
    families = {one.name.partition("-")[0] for one in own}
    ended = command("suite", "verify", name, *(word for one in families for word in ("--only", f"{one}-unseen")))
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("name", ["v1", *LATER])
def test_the_plan_of_a_suite_chooses_what_it_has(name):
    suite, file = find_suite(name)
    plan = tomllib.loads(file.with_suffix(".toml").read_text())
    suite = suite.panels[len(find_suite(plan["extends"])[0].panels) if "extends" in plan else 0 :]
    told = [(one["name"], one["env"], one.get("args", {}), one["tasks"], one.get("need", "")) for one in plan["panels"]]
    assert told == [(one.name, one.panel.env, one.panel.args, len(one.panel), one.need) for one in suite]


def test_a_result_is_added_by_one_file_and_no_other_suites_is_taken(command, small, tmp_path):
    empty = command("suite", "page", "small.json", "--results", "none")
    assert "No results are committed yet." in empty.out and "%" not in empty.out.split("## Policies")[1]
    assert command("evaluate", "expert", "random", "--suite", "small.json", "--out", "found").code == 0
    assert command("evaluate", "random", "--suite", "small.json", "--seed", 5, "--only", "maze").code == 0
    results = tmp_path / "results" / "small"
    results.mkdir(parents=True)
    for file, name in (
        ("found/expert/suite.json", "expert"),
        ("found/random/suite.json", "random"),
        ("runs/suite-small/random/suite.json", "mine"),
    ):
        (results / f"{name}.json").write_text((tmp_path / file).read_text())
    page = command("suite", "page", "small.json").out
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    assert [row[0] for row in rows[1:4]] == ["random (floor)", "expert (ceiling)", "mine"]
    assert [row[1] for row in rows[2:4]] == ["100.0%", "incomplete"]
    [head] = [row for row in rows if row[0] == "panel"]
    assert head[4:] == ["random", "expert", "mine"]
    [roof] = [row for row in rows if row[0] == "roof"]
    assert roof[-2].startswith("100.0% [") and roof[-1] == "–"
    shown = command("evaluate", "expert", "--suite", "small.json", "--only", "roof").out.splitlines()
    [bounds] = [line.split()[3:5] for line in shown if line.startswith("roof ")]
    floor = json.loads((results / "random.json").read_text())["panels"]["roof"]["success"]["mean"]
    assert bounds == [f"{floor:.0%}", "100%"]
    values = json.loads((results / "mine.json").read_text())
    values["panels"]["maze-easy"]["identity"] = "another"
    (results / "mine.json").write_text(json.dumps(values))
    refused = command("suite", "page", "small.json")
    assert refused.code == 2 and "mine.json was made on another small than this one" in refused.err


def test_results_that_are_committed_say_where_they_are_from():
    for file in FOLDER.glob("results/*/*.json"):
        values = json.loads(file.read_text())
        assert values["suite"] == file.parent.name and {"date", "manyturn"} <= values["made"].keys()


def test_the_plan_of_the_page_on_suites_is_frozen_and_played(command, monkeypatch, tmp_path):
    """The commands of suite.md on a suite of one's own."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "suite.md").read_text(encoding="utf-8")
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    for words in re.findall(
        r"^manyturn (suite freeze plan.*|evaluate expert --suite corridors.*)$", text, re.MULTILINE
    ):
        ended = command(*words.split())
        assert ended.code == 0, ended.err
    assert "core: 100.0%" in ended.out and "over 40 tasks" in ended.out


def test_a_plan_that_extends_a_suite_keeps_its_panels_and_names_none_of_them_again(command, small, tmp_path):
    more = '[[panels]]\nname = "{}"\nenv = "manyturn/Maze-v0"\ntasks = 2\n'
    for name, code in (("maze-easy", 2), ("maze-plain", 0)):
        (tmp_path / "more.toml").write_text('name = "more"\nextends = "small.json"\n' + more.format(name))
        ended = command("suite", "freeze", "more.toml", "--out", "more.json")
        assert ended.code == code and (name in ended.err) == bool(code), ended.err
    old, new = (json.loads((tmp_path / f"{name}.json").read_text())["panels"] for name in ("small", "more"))
    assert new[:-1] == old and new[-1]["name"] == "maze-plain"
