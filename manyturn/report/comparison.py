"""Report section that compares policies with the first one: differences paired by task, and regressions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from manyturn.agents.evaluation.paired_comparison import Evaluated, compare
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.report.report_head import Head, Plain, ends, figure, plain_text, table

_PROPORTIONS = {"success": "success", "success_errors_as_failures": "success, errors as failures"}


def comparison_head(evaluations: Sequence[Evaluated], shared: bool = False) -> Head:
    """The head of a comparison with the first of two or more evaluations; raises CompareError as ``compare`` does."""
    comparison = compare(evaluations, shared=shared)
    names = source_names(evaluations)
    others = list(zip(names[1:], comparison["comparisons"], strict=True))
    return Head(
        kind="comparison",
        title=f"{names[0]} and {names[1]}" if len(others) == 1 else f"{names[0]} and {len(others)} others",
        sources=names,
        facts=_facts(comparison, evaluations),
        warnings=list(_warnings(comparison, others)),
        figures=list(_figures(comparison, names, others)),
        tables=[
            _policies(comparison, names),
            *_parts(comparison, names, others),
            *_differences(comparison, others),
            *_regressions(others),
        ],
    )


def source_names(evaluations: Sequence[Evaluated]) -> list[str]:
    """Policies by name; those of one name with their folders, and those of one folder's name with a number."""
    policies = [str(evaluation.summary["policy"]) for evaluation in evaluations]
    folders = [e.folder.resolve() for e in evaluations]
    shown = [folder.parent.name if folder.name == "evaluation" else folder.name for folder in folders]
    twice = Counter(policies)
    names = [p if twice[p] == 1 else f"{p} ({folder})" for p, folder in zip(policies, shown, strict=True)]
    again = Counter(names)
    return [name if again[name] == 1 else f"{name} {number}" for number, name in enumerate(names, 1)]


def _facts(comparison: Plain, evaluations: Sequence[Evaluated]) -> list[list[str]]:
    panel, first = comparison["panels"][0], evaluations[0].summary
    over = "tasks that all have" if comparison["shared"] else f"tasks of {panel['id']}"
    return [
        ["environment", f"{portable_name(comparison['env'])} {plain_text(first.get('args', {}))}".strip()],
        ["compared over", f"{comparison['n_tasks']} {over}"],
        ["panel's hash", ", ".join(dict.fromkeys(one["hash"] for one in comparison["panels"]))],
        ["difference", "mean over tasks, this policy minus the first, with a 95 % interval paired by task"],
        ["p", "sign-flip test of no difference; Holm's adjustment for the number of comparisons"],
        ["could have shown", "the smallest true difference that these tasks show in four of five times"],
    ]


def _warnings(comparison: Plain, others: Sequence[tuple[str, Plain]]) -> Iterator[str]:
    yield from comparison["notes"]
    for name, one in others:
        if one["left_out"]:
            yield f"{name}: {len(one['left_out'])} tasks left out, on which one side has nothing but errors or no score"


def _figures(comparison: Plain, names: Sequence[str], others: Sequence[tuple[str, Plain]]) -> Iterator[Plain]:
    """Success, or return where success is not recorded, of each policy, and the differences."""
    metric = "success" if all(one["success"]["n_tasks"] for one in comparison["policies"]) else "return"
    percent = metric == "success"
    for name, policy in zip(names, comparison["policies"], strict=True):
        yield figure(f"{metric}: {name}", *ends(policy[metric]), policy[metric]["n_tasks"], percent)
    for name, one in others:
        title = f"difference: {name}" if len(others) > 1 else "difference"
        yield figure(title, *ends(one[metric], "difference"), one[metric]["n_tasks"], percent)


def _policies(comparison: Plain, names: Sequence[str]) -> Plain:
    head = {"policy": "text", "success": "interval", "return": "number", "invalid": "percent"}
    rows = [
        [name, ends(policy["success"]), policy["return"]["mean"], policy["invalid_action_rate"]]
        for name, policy in zip(names, comparison["policies"], strict=True)
    ]
    further = {
        "cut replies": ("percent", [policy["cut_reply_rate"] for policy in comparison["policies"]]),
        "cost, USD": ("number", [policy["cost"]["total"] for policy in comparison["policies"]]),
        "episodes": ("number", [policy["n_episodes"] for policy in comparison["policies"]]),
        "errors": ("number", [policy["errors"] for policy in comparison["policies"]]),
    }
    for column, (kind, values) in further.items():
        if any(value is not None for value in values):
            head[column] = kind
            rows = [[*row, value] for row, value in zip(rows, values, strict=True)]
    return table("Policies", head, rows)


def _parts(comparison: Plain, names: Sequence[str], others: Sequence[tuple[str, Plain]]) -> Iterator[Plain]:
    """Mean of each reward part, and its differences; empty where there is only the outcome."""
    parts = list(comparison["policies"][0]["parts"])
    if len(parts) < 2:
        return
    rows = [
        [name, *(policy["parts"][part]["mean"] for part in parts)]
        for name, policy in zip(names, comparison["policies"], strict=True)
    ]
    yield table("Reward parts, mean of an episode", {"policy": "text", **dict.fromkeys(parts, "number")}, rows)
    counts = {"p": "number", "p, Holm": "number", "won": "number", "lost": "number", "tied": "number"}
    head = {"policy": "text", "part": "text", "difference": "number", "low": "number", "high": "number", **counts}
    cells = [(name, part, one["parts"][part]) for name, one in others for part in parts]
    rows = [[name, part, *ends(of_part, "difference"), *_counts(of_part)] for name, part, of_part in cells]
    yield table("Reward parts against the first, paired by task", head, rows)


def _differences(comparison: Plain, others: Sequence[tuple[str, Plain]]) -> Iterator[Plain]:
    """Differences of success as shares with their intervals; those of return are numbers of any size."""
    counts = {"p": "number", "p, Holm": "number", "won": "number", "lost": "number", "tied": "number"}
    head = {"policy": "text", "metric": "text", "difference": "interval", **counts, "could have shown": "percent"}
    with_errors = any(policy["errors"] for policy in comparison["policies"])
    metrics = [metric for metric in _PROPORTIONS if metric == "success" or with_errors]
    cells = [(n, metric, one[metric]) for n, one in others for metric in metrics if one[metric]["n_tasks"]]
    rows = [
        [n, _PROPORTIONS[metric], ends(one, "difference"), *_counts(one), one["detectable"]] for n, metric, one in cells
    ]
    if rows:
        yield table("Success against the first, paired by task", head, rows)
    head = {"policy": "text", "difference": "number", "low": "number", "high": "number", **counts}
    rows = [[n, *ends(one["return"], "difference"), *_counts(one["return"])] for n, one in others]
    yield table("Return against the first, paired by task", head, rows)


def _counts(one: Mapping[str, Any]) -> list[Any]:
    return [one[key] for key in ("p", "p_holm", "wins", "losses", "ties")]


def _regressions(others: Sequence[tuple[str, Plain]]) -> Iterator[Plain]:
    for name, one in others:
        kind = "percent" if one["regressions_by"] == "success" else "number"
        columns = {"task": "text", "before": kind, "after": kind, "change": kind}
        rows = [[w["task"], w["before"], w["after"], w["after"] - w["before"]] for w in one["regressions"]]
        if rows:
            yield table(f"Tasks on which {name} became worse ({one['regressions_by']})", columns, rows)
