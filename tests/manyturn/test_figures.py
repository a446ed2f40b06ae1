"""Figures in prose that no result file has: each figure of a page stands in a file that its section links to."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each has a test that makes it again.
GENERATED = {"costs.md", "suite-v1.md", "suite-v2.md", "suite-v3.md", "options.md", "recipes.md", "papers.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED)]
LEFT_OUT = re.compile(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)  # code, and marks for CI
RESULT = re.compile(r"\]\((?:\.\./)?(benchmarks/results/[\w/.-]+\.(?:jsonl?|md))\)")
LINK = re.compile(r"\]\([^)]*\)")
NUMBER = r"((?:\d{1,3}(?:,\d{3})+|\d+)\.\d+|\d{1,3}(?:,\d{3})+)(?!\.?\d)"
FIGURE = re.compile(rf"(?<![\w.,/-])[+-]?{NUMBER}(?:(?=(?: to [\d.]+)? ?(%|GB\b)))?")
# Numbers of papers, versions, and whole thousands, which are limits and sizes of worlds.
NO_FIGURE = re.compile(
    r"\d{4}\.\d{5}|(?<![\d,.])\d{1,3}(?:,000)+(?![\d,])"
    r"|\b(?:Python|PyTorch|torch|transformers|datasets|vLLM|Docker|Podman|Linux)(?:(?:,| or| and)?\s\d+\.\d+\b)+"
)
# What nobody measured: settings, limits and versions.
SETTLED = {
    "ablations.md": "0.2",
    "credit-audit-results.md": "0.0 1.0 1.4",
    "exporting-tasks.md": "0.1 0.3",
    "gpu.md": "1.5 3.6",
    "grading.md": "1.0",
    "inner-turns.md": "0.25 0.5 0.75",
    "migration.md": "0.01 0.1 0.4",
    "models.md": "2.3",
    "families.md": "7,207",
    "official-benchmarks.md": "26.3 1,796 1,819 3,592",
    "other-trainers.md": "3.12 3.13",
    "ready-made-runs.md": "0.38",
    "sandboxes.md": "458,752",
    "scorecard.md": "0.05 0.2",
    "serving.md": "2,048",
    "software.md": "0.1 0.3",
    "training.md": "0.01 0.2 1.5",
    "trajectories.md": "1.8",
    "vllm.md": "0.32 5.17 5.19",
}


def sections(page: Path) -> Iterator[tuple[str, list[str], list[tuple[str, str]]]]:
    """Of each section of a page its heading, the result files that it links to, and its figures with their units."""
    for text in re.split(r"^(?=#+ )", LEFT_OUT.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE):
        yield text.partition("\n")[0], RESULT.findall(text), FIGURE.findall(NO_FIGURE.sub("", LINK.sub("]", text)))


def numbers(value: object) -> Iterator[float]:
    """All numbers in plain values, without their signs; also those within texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))
    elif isinstance(value, str):
        yield from (float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", value))
    elif isinstance(value, dict):
        yield from (number for entry in value.values() for number in numbers(entry))
    elif isinstance(value, list):
        yield from (number for entry in value for number in numbers(entry))


@cache
def held(file: str) -> frozenset[float]:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".md"):
        return frozenset(numbers(text))
    return frozenset(
        numbers([json.loads(line) for line in text.splitlines()] if file.endswith("l") else json.loads(text))
    )


def stands_in(figure: str, unit: str, file: str) -> bool:
    """Whether a file has a number that rounds to a figure: a share for a percentage, MB for GB, or microseconds for
    the times a second."""
    wanted, places = float(figure.replace(",", "")), len(figure.partition(".")[2])
    close = 0.5 * 10**-places + 1e-9
    factors = {"%": (1, 100), "GB": (1, 1e-3)}.get(unit, (1,))
    return any(
        any(abs(number * factor - wanted) <= close for factor in factors)
        or ("," in figure and number > 0 and abs(1e6 / number - wanted) <= close)
        for number in held(file)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_figure_in_prose_stands_in_a_file_that_its_section_links_to(page):
    settled = SETTLED.get(page.name, "").split()
    lost = [
        f"{heading}: {figure} {unit}"
        for heading, files, figures in sections(page)
        for figure, unit in figures
        if figure not in settled and not any(stands_in(figure, unit, file) for file in files)
    ]
    assert not lost, f"link the result file in the section, or correct the figure: {lost}"


def test_what_is_settled_is_said():
    """An entry without its figure would hide the next figure that is made up."""
    said = {page.name: {figure for *_, figures in sections(page) for figure, _ in figures} for page in PAGES}
    assert not {(name, one) for name, ones in SETTLED.items() for one in ones.split() if one not in said[name]}


def test_a_figure_that_is_made_up_is_found():
    assert stands_in("0.965", "", "benchmarks/results/quickstart.json")
    assert not stands_in("0.966", "", "benchmarks/results/quickstart.json")


def test_the_curve_of_the_quickstart_is_of_the_runs_that_its_page_reports():
    text = (ROOT / "docs" / "ready-made-runs.md").read_text(encoding="utf-8")
    runs = json.loads((ROOT / "benchmarks/results/quickstart.json").read_text(encoding="utf-8"))["runs"]
    seeds = ", ".join(str(run["seed"]) for run in runs)
    picture = (ROOT / "benchmarks/results/quickstart.png").read_bytes()
    assert "benchmarks/results/quickstart.png" in text and len(runs) == 3
    assert f"success on held-out tasks, seeds {seeds}".encode() in picture
    assert all({"after", "after_greedy"} <= run.keys() for run in runs)
    for kind in ("before", "before_greedy"):  # what the agent begins with is no better than random play
        assert all(run[kind]["ci_low"] < run["random"]["ci_high"] for run in runs), kind


def test_the_first_picture_shows_what_its_caption_says():
    caption = re.search(r"\*An agent cooks.*?\*\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    result = json.loads((ROOT / "benchmarks/results/turn_credit.json").read_text(encoding="utf-8"))
    *others, last = result["turns"]
    assert (
        f"{len(others) + 1} turns of {result['env']} {result['task']}".encode()
        in (ROOT / "benchmarks/results/turn_credit.png").read_bytes()
    )
    assert "all nine turns" in caption and len(others) == 8 and result["reliability_of_the_truth"] > 0.8
    assert last["effect"] < -0.5 and abs(last["effect"]) > 20 * last["error"]
    assert max(abs(turn["effect"]) for turn in others) < 0.2
    assert len({turn["grpo"] for turn in result["turns"]}) == 1
    assert max(turn["gigpo"] for turn in result["turns"]) < 0.5 * last["gigpo"] < 0
    assert min(result["turns"], key=lambda turn: turn["forks"]) is last


def test_what_readme_says_the_quickstart_prints_is_what_its_first_run_measured():
    run = json.loads((ROOT / "benchmarks/results/quickstart.json").read_text(encoding="utf-8"))["runs"][0]
    rows = re.findall(r"^│ ([a-z, ]+?) +│ ([\d.]+) +│ ([\d.]+) to ([\d.]+)", (ROOT / "README.md").read_text(), re.M)
    measured = {name: run[name.replace(", ", "_")] for name, *_ in rows}
    assert len(rows) == 5 and run["seed"] == 0
    for name, *figures in rows:
        assert figures == [f"{measured[name][part]:.3f}" for part in ("success", "ci_low", "ci_high")]


# A table's head, a printed table, or a picture of how often trained policies succeed.
SUCCESS = re.compile(
    r"\A\|.*\b(?:success|sampled|warmed up|synchronous)\b.*\|\n\| ?-|^(?:│ after|policy +success)\b"
    r"|\A!\[.*\b(?:learning curve|gain|share of episodes|success)\b",
    re.MULTILINE | re.IGNORECASE,
)


# Pages where a table has no greedy success say so, or say how to get it.
WITHOUT_GREEDY = re.compile(r"greedy success\s+was\s+not\s+measured|--sampling\.temperature 0")


def shown_success() -> list[tuple[str, str, str]]:
    """Page, table or picture, and it with the paragraphs before and after it, of all that shows policies' success."""
    shown = []
    for page in [*PAGES, *sorted(ROOT.glob("docs/suite-v*.md"))]:
        if page.name == "credit-audit-results.md":  # experts that err by chance: they have no greedy form
            continue
        fenced = re.split(r"(^```.*?^```$)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        parts = [text.strip() for part in fenced for text in ([part] if part[:3] == "```" else part.split("\n\n"))]
        texts = [text for text in parts if text]
        shown += [
            (page.name, t, "\n".join(texts[max(i - 1, 0) : i + 2])) for i, t in enumerate(texts) if SUCCESS.search(t)
        ]
    return shown


def test_success_is_never_shown_without_a_word_on_greedy_and_sampled_replies():
    """A policy that imitates well greedily and samples badly seems to learn much."""
    shown = shown_success()
    pages = {"README.md", "first-hour.md", "ready-made-runs.md", "comparison.md", "asynchronous.md"}
    pages |= {"clarify.md", "grading-results.md"}
    assert pages <= {page for page, *_ in shown}
    lacking = [
        (page, table[:200])
        for page, table, text in shown
        if "sampled" not in text
        or "greedy" not in (text if table[0] == "!" or WITHOUT_GREEDY.search(text) else table).lower()
    ]
    assert not lacking
