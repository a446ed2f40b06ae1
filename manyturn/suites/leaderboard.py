"""The page of a suite's results, in Markdown, made from the suite and the files of results alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.summary_table import count, ends_of, number
from manyturn.suites.result import results_in
from manyturn.suites.suite import NEEDS, Suite
from manyturn.suites.table import CEILING, FLOOR

_FOLDER = "../benchmarks/results/suite"
_EARLIER, _SCRIPT = "python benchmarks/suite.py", "python -m benchmarks.runs.suite"  # results name the former
_ROLES = {FLOOR: "floor", CEILING: "ceiling"}
Results = Mapping[str, Mapping[str, Any]]


def page(suite: Suite, folder: Path) -> str:
    """The page.

    Args:
        folder: of results.
    """
    results = results_in(folder, suite)
    ordered = dict(sorted(results.items(), key=_rank))
    made = f"manyturn suite page {suite.name} > docs/suite-{suite.name}.md"
    parts = [
        f"# Results on suite {suite.name}",
        f"This page is generated: `{made}`. [suite.md](suite.md) says how to play the suite and how to add a result.",
        f"The suite has {len(suite.panels)} panels with {_tasks(suite.panels)} tasks. Its hash is `{suite.hash}`.",
        "## Policies",
        _policies(suite, ordered) if ordered else "No results are committed yet.",
        "## Panels",
        _success_of_all(suite, ordered),
        _skipped(ordered),
        _commands(ordered),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _rank(entry: tuple[str, Mapping[str, Any]]) -> tuple[int, float, str]:
    """Floor and ceiling first, then the best; those without a complete core last."""
    name, values = entry
    if name in _ROLES:
        return (0, list(_ROLES).index(name), name)
    return (1, -values["core"]["mean"], name) if values["core"] else (2, 0.0, name)


def _tasks(panels: Sequence[Any]) -> int:
    return sum(len(one.panel) for one in panels)


def _policies(suite: Suite, results: Results) -> str:
    head = ("policy", "core", "95 %", "panels", "errors", "minutes", "tokens", "cost", "made with", "file")
    rows = []
    for name, values in results.items():
        core, totals, made = values["core"], values["totals"], values["made"]
        tokens = f"{count(totals['prompt_tokens'])} + {count(totals['reply_tokens'])}"
        commit = values.get("commit")
        code = f"commit {commit}" if commit else f"manyturn {made['manyturn']}"
        where = f"{code}, {values.get('date', made['date'])}, {values.get('machine', made['machine'])}"
        role = f" ({_ROLES[name]})" if name in _ROLES else ""
        rows.append(
            (
                f"{name}{role}",
                number(core["mean"], percent=True) if core else "incomplete",
                ends_of(core) if core else "–",
                f"{len(values['panels'])} of {len(suite.panels)}",
                str(totals["errors"]),
                "–" if totals["seconds"] is None else f"{totals['seconds'] / 60:.1f}",
                "–" if totals["reply_tokens"] is None else tokens,
                number(totals["cost"]),
                where,
                f"[{name}.json]({_FOLDER}/{suite.name}/{name}.json)",
            )
        )
    about = (
        f"Core is the success over the {_tasks(suite.core)} tasks of the {len(suite.core)} panels that need nothing "
        "besides manyturn, with a 95 % interval over tasks. Tokens are those of all prompts and of all replies."
    )
    return f"{_table(head, rows)}\n\n{about}"


def _success_of_all(suite: Suite, results: Results) -> str:
    head = ("panel", "environment", "tasks", "needs", *results)
    rows = []
    for one in suite:
        args = "".join(f", {key} {value}" for key, value in one.panel.args.items())
        split = "" if one.panel.split == "test" else f", split {one.panel.split}"
        cells = [_success(values["panels"].get(one.name)) for values in results.values()]
        need = NEEDS.get(one.need, "")
        rows.append((one.name, f"`{one.panel.env}`{args}{split}", str(len(one.panel)), need, *cells))
    about = "A cell is the success with its 95 % interval, and the turns of an episode; – was not played."
    parts = [_table(head, rows), *([about] if results else []), *_draws(results), *_letters(results)]
    return "\n\n".join(parts)


def _draws(results: Results) -> list[str]:
    """The sampling of each model, since sampled and greedy success differ."""
    heats = {name: values["sampling"].get("temperature") for name, values in results.items() if values["sampling"]}
    draws = [f"{name} {_draw(heat)}" for name, heat in heats.items()]
    return [f"Replies are sampled or greedy: {', '.join(draws)}."] if draws else []


def _draw(heat: float | None) -> str:
    if heat is None:
        return "as its server draws"
    return f"sampled at temperature {heat:g}" if heat else "greedy"


def _letters(results: Results) -> list[str]:
    """Floors of letters, not of moves."""
    panels = results[FLOOR]["panels"] if FLOOR in results else {}
    names = [name for name, result in panels.items() if result["invalid_action_rate"] == 1]
    if not names:
        return []
    return [
        "Where no admissible commands are listed, the random policy says random letters. No action of it was valid on: "
        f"{', '.join(names)}."
    ]


def _success(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "–"
    return (
        f"{number(result['success']['mean'], percent=True)} [{ends_of(result['success'])}], {number(result['turns'])}"
    )


def _skipped(results: Results) -> str:
    lines = [f"- {name}: {', '.join(values['skipped'])}" for name, values in results.items() if values["skipped"]]
    return "\n".join(["## Skipped", "", *lines]) if lines else ""


def _commands(results: Results) -> str:
    """Origin of the results that state it, as a command of today; an evaluation by hand does not state it."""
    commands = {name: values["command"] for name, values in results.items() if "command" in values}
    lines = [f"- {name}: `{command.replace(_EARLIER, _SCRIPT)}`" for name, command in commands.items()]
    return "\n".join(["## Commands", "", *lines]) if lines else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
